CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email text NOT NULL, card text);
INSERT INTO customers SELECT n, 'Customer ' || n, 'c' || n || '@example.com', 'card-' || n FROM generate_series(1, 12) n;
