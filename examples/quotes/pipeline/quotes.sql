-- Every decision about a quote, in the order in which it was made. Events are appended, each upon the
-- version that its sender has seen: of two agents who decide at once, one is told to look again.
CREATE STREAM quote_events (
  quote_id STRING, kind STRING, agent STRING, premium DECIMAL(10, 2), at TIMESTAMP
) WITH (key = 'quote_id', retention = 'forever');

-- The read model: what a screen shows of a quote. EXPLAIN ROW names the events behind a row.
CREATE TABLE quotes AS
  SELECT quote_id,
         count(*) AS version,
         max_by(premium, at) AS premium,
         count_if(kind = 'corrected') AS corrections,
         count_if(kind = 'accepted') > 0 AS accepted
  FROM quote_events
  GROUP BY quote_id;

CREATE TABLE agents AS
  SELECT agent, count_if(kind = 'accepted') AS sold FROM quote_events GROUP BY agent;
