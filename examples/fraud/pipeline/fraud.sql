-- What breaks a rule never reaches the model: it waits in the quarantine. The tag goes with the card to
-- `scored` and `held_payments`; DESCRIBE shows it there.
CREATE STREAM payments (
  payment STRING NOT NULL, card STRING NOT NULL PII, amount DOUBLE CHECK (amount > 0),
  km_from_home DOUBLE, new_card BOOLEAN, at TIMESTAMP
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
