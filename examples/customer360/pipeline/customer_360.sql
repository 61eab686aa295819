-- What each of the streams has to say of a customer, under the name that it has for customers.
CREATE TABLE tickets_now WITH (key = 'id') AS SELECT id, customer, state FROM tickets;

CREATE TABLE subscriptions AS
  SELECT email, max_by(action, at) = 'subscribe' AS subscribed FROM newsletter_actions GROUP BY email;

CREATE TABLE card_totals AS SELECT card, count(*) AS purchases, sum(cents) AS cents FROM card_payments GROUP BY card;

CREATE TABLE logins AS
  SELECT customer, max(at) AS last_login
  FROM (
    SELECT CAST(regexp_extract(message, r'customer=(\d+)', 1) AS INT) AS customer, at
    FROM app_lines WHERE app = 'shop' AND message LIKE 'login customer=%'
  )
  GROUP BY customer;

CREATE TABLE views AS SELECT customer, count(*) AS page_views, max_by(page, at) AS last_page FROM page_views GROUP BY customer;

-- One row for each customer: equal to this query over all of it as it is, after every change anywhere.
CREATE TABLE customer_360 WITH (key = 'id') AS
  SELECT c.id, c.name, c.email,
         coalesce(i.owed, 0) AS owed, coalesce(t.open_tickets, 0) AS open_tickets,
         coalesce(s.subscribed, false) AS subscribed,
         coalesce(p.purchases, 0) AS purchases, coalesce(p.cents, 0) AS store_cents,
         l.last_login, coalesce(v.page_views, 0) AS page_views, v.last_page
  FROM crm_customers c
  LEFT JOIN (SELECT customer, sum(cents) AS owed FROM billing_invoices WHERE paid = 0 GROUP BY customer) i ON i.customer = c.id
  LEFT JOIN (SELECT customer, count(*) AS open_tickets FROM tickets_now WHERE state = 'open' GROUP BY customer) t ON t.customer = c.id
  LEFT JOIN subscriptions s ON s.email = c.email
  LEFT JOIN card_totals p ON p.card = c.card
  LEFT JOIN logins l ON l.customer = c.id
  LEFT JOIN views v ON v.customer = c.id;
