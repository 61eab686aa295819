CREATE TABLE sales (id int PRIMARY KEY, store text NOT NULL, at timestamptz NOT NULL);
CREATE TABLE outbox (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregatetype text NOT NULL, aggregateid text NOT NULL, type text NOT NULL, payload jsonb NOT NULL
);
