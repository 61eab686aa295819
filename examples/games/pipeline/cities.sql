-- The game runs in cities, and in each city in groups. Each group writes to topics of its own,
-- `city.group.chat` and `city.group.loot`, so that a city's servers need only what is theirs.
CREATE STREAM nyc_red_chat (player STRING, text STRING) WITH (topic = 'nyc.red.chat', key = 'player');
CREATE STREAM nyc_red_loot (player STRING, item STRING, gold INT) WITH (topic = 'nyc.red.loot', key = 'player');

CREATE STREAM nyc_blue_chat (player STRING, text STRING) WITH (topic = 'nyc.blue.chat', key = 'player');
CREATE STREAM nyc_blue_loot (player STRING, item STRING, gold INT) WITH (topic = 'nyc.blue.loot', key = 'player');

CREATE STREAM rome_red_chat (player STRING, text STRING) WITH (topic = 'rome.red.chat', key = 'player');
CREATE STREAM rome_red_loot (player STRING, item STRING, gold INT) WITH (topic = 'rome.red.loot', key = 'player');
