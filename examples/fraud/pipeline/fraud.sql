CREATE STREAM payments (
  payment STRING, card STRING, amount DOUBLE, km_from_home DOUBLE, new_card BOOLEAN, at TIMESTAMP
) WITH (key = 'card', event_time = 'at', watermark = '1 minute');

-- The model is a function like any other (functions/fraud.py). Arrow brings it whole batches.
CREATE STREAM scored AS
  SELECT payment, card, amount, at,
         fraud_score(amount, hour(at), km_from_home, new_card) AS score
  FROM payments;

CREATE TABLE held_payments WITH (key = 'payment') AS
  SELECT payment, card, amount, score FROM scored WHERE score > 0.8;

CREATE TABLE risk_by_hour AS
  SELECT hour(at) AS hour, count(*) AS payments, avg(score) AS average_score
  FROM scored GROUP BY hour(at);
