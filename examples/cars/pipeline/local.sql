-- What the cars of a region send: a record a second from each. It stays here, for an hour.
-- A car that is parked sends nothing: after two quiet seconds time goes on with the clock, so that
-- the last ten seconds are reported, too.
CREATE STREAM telemetry (car STRING, kmh DOUBLE, engine_celsius DOUBLE, braking DOUBLE, fuel DOUBLE, at TIMESTAMP)
  WITH (
    key = 'car', event_time = 'at', watermark = '1 second', idle_timeout = '2 seconds',
    retention = '1 hour'
  );

-- For the region's own screens: each car over the last minutes, with every change.
CREATE TABLE car_minutes AS
  SELECT car, window.start AS minute,
         count(*) AS records, avg(kmh) AS kmh, max(engine_celsius) AS engine_celsius, min(fuel) AS fuel
  FROM telemetry
  GROUP BY car, window(at, '1 minute');
