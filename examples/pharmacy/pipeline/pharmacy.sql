-- Who is where. Tables can change at any time; a visit meets them as they are when it comes.
CREATE TABLE patients (
  patient STRING PRIMARY KEY, name STRING, doctor STRING,
  home_lat DOUBLE, home_lon DOUBLE, work_lat DOUBLE, work_lon DOUBLE
);
CREATE TABLE doctors (doctor STRING PRIMARY KEY, lat DOUBLE, lon DOUBLE);
CREATE TABLE pharmacies (pharmacy STRING PRIMARY KEY, lat DOUBLE, lon DOUBLE);

CREATE STREAM visits (visit STRING, patient STRING, pharmacy STRING, drug STRING, at TIMESTAMP)
  WITH (key = 'patient', event_time = 'at', watermark = '1 hour');

-- How far is the pharmacy from the nearest place where the patient has a reason to be?
-- Some have no work and some no doctor: least() passes over what is NULL.
CREATE STREAM measured_visits AS
  SELECT v.visit, v.patient, p.name, v.pharmacy, v.drug, v.at,
         least(
           km(f.lat, f.lon, p.home_lat, p.home_lon),
           km(f.lat, f.lon, p.work_lat, p.work_lon),
           km(f.lat, f.lon, d.lat, d.lon)
         ) AS km_away
  FROM visits v
  JOIN patients p ON p.patient = v.patient
  JOIN pharmacies f ON f.pharmacy = v.pharmacy
  LEFT JOIN doctors d ON d.doctor = p.doctor;

-- One far visit is a holiday. Three in a month, in different pharmacies, for the same drug, are a
-- case for somebody to look at.
CREATE TABLE suspects AS
  SELECT patient, name, drug, date_trunc('MONTH', at) AS month,
         count(*) AS far_visits,
         size(collect_set(pharmacy)) AS pharmacies,
         max(km_away) AS farthest_km
  FROM measured_visits
  WHERE km_away > 50
  GROUP BY patient, name, drug, date_trunc('MONTH', at)
  HAVING count(*) >= 3 AND size(collect_set(pharmacy)) >= 3;
