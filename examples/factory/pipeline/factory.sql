-- A reading a second from each sensor, up to ten seconds late.
CREATE STREAM readings (sensor STRING, celsius DOUBLE, at TIMESTAMP)
  WITH (key = 'sensor', event_time = 'at', watermark = '10 seconds');

-- `alarms` is made by a Python function with a timer for each sensor: functions/alarms.py.

-- Minutes in which a sensor was hot on average. EMIT FINAL: one row for each minute, when no more
-- readings of it can come, so that it can be sent on and acted upon.
CREATE STREAM hot_minutes AS
  SELECT sensor, window.start AS minute, avg(celsius) AS average, max(celsius) AS highest, count(*) AS readings
  FROM readings
  GROUP BY sensor, window(at, '1 minute')
  HAVING avg(celsius) > 90
  EMIT FINAL;

-- Which alarms stand now: the last word of each sensor.
CREATE TABLE alarm_board WITH (key = 'sensor') AS SELECT sensor, what, at FROM alarms;
