-- Streams: facts in the order in which they happened.
-- Definitions may stand in any file and in any order; who reads whom comes from the text.

-- A declared stream is a Kafka topic with columns. Records are JSON objects.
-- `key` puts records of one user into one partition, so that their order is kept;
-- `event_time` says when a click happened, `watermark` how late it may arrive.
CREATE STREAM clicks (user_id STRING, page STRING, country STRING, at TIMESTAMP)
  WITH (key = 'user_id', event_time = 'at', watermark = '10 seconds');

CREATE STREAM orders (
  order_id STRING, user_id STRING, product STRING, amount DECIMAL(10,2), at TIMESTAMP
) WITH (key = 'order_id', event_time = 'at', watermark = '10 seconds');

-- A derived stream is a flow: it runs all the time and writes each result once.
CREATE STREAM big_orders AS
  SELECT order_id, user_id, product, amount, at
  FROM orders
  WHERE amount >= 100;
