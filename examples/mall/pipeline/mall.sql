-- The Wi-Fi sees a phone every few seconds as long as it is near.
CREATE STREAM sightings (device STRING, entrance STRING, at TIMESTAMP)
  WITH (key = 'device', event_time = 'at', watermark = '1 minute');

CREATE TABLE members (device STRING PRIMARY KEY, member STRING, likes STRING, wants_mail BOOLEAN);

CREATE TABLE promotions (
  promotion STRING PRIMARY KEY, category STRING, offer STRING, begins TIMESTAMP, ends TIMESTAMP
);

-- `arrivals` is made by a Python function that knows who was here already: functions/visits.py.
-- An arrival meets members and promotions as they are at that moment: a promotion that is written
-- to the table now goes out to the next member who comes in.
CREATE STREAM messages WITH (key = 'member') AS
  SELECT m.member, p.promotion, p.offer, a.entrance, a.at AS arrived
  FROM arrivals a
  JOIN members m ON m.device = a.device
  JOIN promotions p ON p.category = m.likes AND a.at >= p.begins AND a.at < p.ends
  WHERE m.wants_mail;

CREATE TABLE promotion_results AS
  SELECT promotion, count(*) AS messages FROM messages GROUP BY promotion;
