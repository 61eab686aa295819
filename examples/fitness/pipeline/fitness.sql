-- A point every few seconds from each runner's wrist. The key keeps a runner's points in order.
CREATE STREAM gps (runner STRING, lat DOUBLE, lon DOUBLE, at TIMESTAMP)
  WITH (key = 'runner', event_time = 'at', watermark = '1 minute');

CREATE TABLE places (place STRING PRIMARY KEY, lat DOUBLE, lon DOUBLE);

-- `movements` is made by a Python function that keeps the last ten points of each runner:
-- functions/tracking.py. Each movement meets the list of places as it is at that moment.
CREATE STREAM track WITH (key = 'runner') AS
  SELECT m.runner, m.at, nearest(m.lat, m.lon, p.list) AS place,
         m.kmh, m.metres_last_ten, m.metres_total
  FROM movements m
  CROSS JOIN (SELECT collect_list(struct(place, lat, lon)) AS list FROM places) p;

-- Where everybody is now: the latest row of each runner.
CREATE TABLE runners WITH (key = 'runner') AS SELECT * FROM track;

CREATE TABLE fastest AS
  SELECT runner, place, max(kmh) AS kmh, count(*) AS points FROM track GROUP BY runner, place;
