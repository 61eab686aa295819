-- What is inserted into the outbox goes to the topic that its aggregatetype names: till.outbox.sale.
CREATE SOURCE till WITH (
  connector = 'postgres-cdc', url = '${env:TILL_URL}', tables = 'sales', outbox = 'outbox', heartbeat = '1 second'
);

CREATE STREAM sales (
  id INT, store STRING, member STRING, at TIMESTAMP, items ARRAY<STRUCT<product: STRING, n: INT, cents: INT>>
) WITH (topic = 'till.outbox.sale', event_time = 'at');

CREATE STREAM sale_lines WITH (event_time = 'at') AS
  SELECT id, store, member, at, item.product, item.n, item.n * item.cents AS cents
  FROM (SELECT *, explode(items) AS item FROM sales);

-- inventory: what was sold, by store and product
CREATE TABLE sold AS SELECT store, product, sum(n) AS n FROM sale_lines GROUP BY store, product;
CREATE SINK inventory FROM sold WITH (connector = 'redis', url = '${env:INVENTORY_URL}', prefix = 'sold:');

-- loyalty: what each member has spent
CREATE TABLE spent AS SELECT member, sum(cents) AS cents FROM sale_lines WHERE member IS NOT NULL GROUP BY member;
CREATE SINK loyalty FROM spent WITH (connector = 'postgres', url = '${env:LOYALTY_URL}', table = 'spent');

-- analytics: every line of every sale, by day
CREATE SINK analytics FROM sale_lines WITH (connector = 'files', folder = '${env:ANALYTICS_FOLDER}', partition_by = 'day');
