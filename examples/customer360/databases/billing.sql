CREATE TABLE invoices (id int PRIMARY KEY, customer int NOT NULL, cents int NOT NULL, paid boolean NOT NULL);
INSERT INTO invoices VALUES (1, 1, 1000, true), (2, 2, 2500, false), (3, 2, 400, false);
