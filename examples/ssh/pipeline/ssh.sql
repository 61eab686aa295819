CREATE SOURCE machines WITH (connector = 'syslog', listen = '${env:SYSLOG_ADDRESS}', stream = 'log_lines');

CREATE SINK log_search FROM log_lines WITH (connector = 'opensearch', url = '${env:SEARCH_URL}', index = 'logs');

-- A machine that was cut off may tell of it a day later.
CREATE STREAM ssh_failures WITH (key = 'address', event_time = 'at', watermark = '1 day') AS
  SELECT host, at,
         regexp_extract(message, r'^Failed password for (?:invalid user )?(.+) from \S+ port', 1) AS account,
         regexp_extract(message, r' from (\S+) port \d+ ssh2$', 1) AS address
  FROM log_lines
  WHERE app = 'sshd' AND message RLIKE r'^Failed password for .+ from \S+ port \d+ ssh2$';

CREATE TABLE attackers AS
  SELECT address, window.start AS since, count(*) AS failures
  FROM ssh_failures
  GROUP BY address, window(at, '5 minutes')
  HAVING count(*) > 5;

-- A change of `failures` is none here, so there is one record for each attack: that it began.
CREATE STREAM alarms AS SELECT address, since FROM attackers;
