-- Tables: the present state, one row for each key, kept up to date while events arrive.
-- The grouping columns are the primary key. psql and every BI tool can read the tables.

-- Visits for each page and minute.
CREATE TABLE page_visits AS
  SELECT page,
         window.start AS minute,
         count(*) AS visits
  FROM clicks
  GROUP BY page, window(at, '1 minute');

-- Sales for each product since the beginning.
CREATE TABLE sales_by_product AS
  SELECT product, count(*) AS orders, sum(amount) AS revenue, max(amount) AS largest
  FROM orders
  GROUP BY product;
