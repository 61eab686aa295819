CREATE TABLE tickets (id int PRIMARY KEY, customer int NOT NULL, state text NOT NULL, changed_at timestamptz NOT NULL DEFAULT clock_timestamp());
INSERT INTO tickets (id, customer, state) VALUES (1, 3, 'open'), (2, 3, 'closed');
