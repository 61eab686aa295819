-- Two tables of the application's database, with every change. The password does not leave it.
CREATE SOURCE app WITH (connector = 'postgres-cdc', url = '${env:APP_URL}', tables = 'profiles, interests', heartbeat = '1 second')
  TRANSFORM (drop(profiles.password));

-- One document for each person, made anew whenever a row of either table changes.
CREATE TABLE profile_documents WITH (key = 'id') AS
  SELECT p.id, p.name, p.email, p.city, i.interests
  FROM app_profiles p
  LEFT JOIN (
    SELECT profile_id, array_sort(collect_list(interest)) AS interests FROM app_interests GROUP BY profile_id
  ) i ON i.profile_id = p.id;

CREATE SINK profile_search FROM profile_documents
  WITH (connector = 'opensearch', url = '${env:SEARCH_URL}', index = 'profiles');

CREATE SINK profile_contacts FROM app_profiles
  WITH (connector = 'postgres', url = '${env:MARKETING_URL}', table = 'contacts')
  TRANSFORM (drop(city));
