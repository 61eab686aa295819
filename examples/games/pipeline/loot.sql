-- All loot; functions/loot.py numbers it for each player, in the order in which it was found.
CREATE STREAM loot FROM TOPICS '{city}.{team}.loot' (player STRING, item STRING, gold INT)
  WITH (key = 'player');

CREATE TABLE loot_book WITH (key = 'player, number') AS
  SELECT player, number, city, item, purse FROM loot_in_order;

CREATE TABLE gold_of_cities AS
  SELECT city, team, count(*) AS finds, sum(gold) AS gold FROM loot GROUP BY city, team;
