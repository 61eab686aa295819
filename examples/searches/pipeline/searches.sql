-- What was searched, and which pages the result showed.
CREATE STREAM searches (
  search_id STRING, user_id STRING, query STRING, shown ARRAY<STRING>, at TIMESTAMP
) WITH (key = 'user_id', event_time = 'at', watermark = '1 minute');

-- A click knows the user and the page, not the search that led to it.
CREATE STREAM clicks (user_id STRING, page STRING, at TIMESTAMP)
  WITH (key = 'user_id', event_time = 'at', watermark = '1 minute');

-- Attribution: a click belongs to a search of the same user that showed the page at most ten
-- minutes before. LEFT JOIN keeps searches that nobody clicked on: they are written when the
-- watermark of both streams says that no click can come any more. Until then both sides wait in
-- the flow's state; `EXPLAIN attributed` says how long.
CREATE STREAM attributed AS
  SELECT s.search_id, s.user_id, s.query, c.page, s.at AS searched_at, c.at AS clicked_at
  FROM searches s
  LEFT JOIN clicks c
    ON c.user_id = s.user_id
    AND array_contains(s.shown, c.page)
    AND c.at BETWEEN s.at AND s.at + INTERVAL 10 MINUTES;

-- How good is each query's result? Served from PostgreSQL, changed with every attributed click.
CREATE TABLE query_quality AS
  SELECT query,
         count(page) AS clicks,
         count_if(page IS NULL) AS abandoned,
         avg(unix_millis(clicked_at) - unix_millis(searched_at)) / 1000 AS seconds_to_click
  FROM attributed
  GROUP BY query;
