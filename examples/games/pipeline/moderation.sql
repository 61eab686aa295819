-- All chats of all cities, those that open tomorrow included. The parts of a topic's name that
-- have names are columns.
CREATE STREAM chat FROM TOPICS '{city}.{team}.chat' (player STRING, text STRING)
  WITH (key = 'player');

CREATE STREAM removed_messages AS
  SELECT city, team, player, bad_word(text) AS word, text FROM chat
  WHERE bad_word(text) IS NOT NULL;

CREATE TABLE muted_players AS
  SELECT player, count(*) AS removed FROM removed_messages GROUP BY player HAVING count(*) >= 3;
