-- All that leaves the region: ten seconds of a car in one record, and only when something is wrong.
-- The dotted topic is what replication chooses by: `hq.**` goes on, `telemetry` stays.
CREATE STREAM exceptions WITH (topic = 'hq.cars.exceptions', key = 'car', retention = '30 days') AS
  SELECT car, window.start AS since,
         max(engine_celsius) AS engine_celsius,
         count_if(braking > 8) AS hard_stops,
         min(fuel) AS fuel
  FROM telemetry
  GROUP BY car, window(at, '10 seconds')
  HAVING max(engine_celsius) > 115 OR count_if(braking > 8) >= 2
  EMIT FINAL;
