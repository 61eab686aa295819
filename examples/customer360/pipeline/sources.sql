-- Seven systems. Three are databases, and none of them is asked to change anything.
CREATE SOURCE crm WITH (connector = 'postgres-cdc', url = '${env:CRM_URL}', tables = 'customers', heartbeat = '1 second');

CREATE SOURCE billing WITH (connector = 'mariadb-cdc', url = '${env:BILLING_URL}', tables = 'invoices', heartbeat = '1 second');

CREATE SOURCE helpdesk WITH (
  connector = 'jdbc-poll', url = '${env:HELPDESK_URL}', user = 'admin', password = '${env:HELPDESK_PASSWORD}',
  table = 'public.tickets', timestamp = 'changed_at', incrementing = 'id', interval = '1 second', delay = '1 second', stream = 'tickets'
);

CREATE SOURCE newsletter WITH (
  connector = 'webhook', columns = 'email STRING, action STRING, at TIMESTAMP', key = 'email', event_time = 'at', stream = 'newsletter_actions'
);

CREATE SOURCE stores WITH (
  connector = 'files', folder = 'data/stores', pattern = '*.csv', format = 'csv', header = 'true',
  columns = 'card STRING, cents INT, at TIMESTAMP', key = 'card', stream = 'card_payments'
);

CREATE SOURCE app_servers WITH (connector = 'syslog', listen = '${env:APP_LOG_ADDRESS}', stream = 'app_lines');

CREATE STREAM page_views (customer INT, page STRING, at TIMESTAMP) WITH (key = 'customer', event_time = 'at');
