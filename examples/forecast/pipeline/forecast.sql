CREATE STREAM power_readings (machine STRING, load DOUBLE, ambient DOUBLE, power DOUBLE, at TIMESTAMP)
  WITH (key = 'machine', event_time = 'at', watermark = '1 minute');

-- `forecasts` is made by functions/forecast.py: a model for each machine, whose weights are its state.

-- Does it learn? The mean error of each machine, for each hundred readings.
CREATE TABLE learning_curve AS
  SELECT machine, (number - 1) DIV 100 AS hundred, avg(abs(error)) AS mean_error
  FROM forecasts
  GROUP BY machine, (number - 1) DIV 100;

-- Once it knows its machine, a large error is worth a look.
CREATE STREAM unusual AS
  SELECT machine, number, at, predicted, power FROM forecasts WHERE number > 200 AND abs(error) > 5;
