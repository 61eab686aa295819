CREATE TABLE profiles (
  id int PRIMARY KEY, name text NOT NULL, email text NOT NULL, city text, password text NOT NULL
);
CREATE TABLE interests (profile_id int REFERENCES profiles ON DELETE CASCADE, interest text, PRIMARY KEY (profile_id, interest));

-- people who were there before anybody thought of Mainstem
INSERT INTO profiles SELECT n, 'Person ' || n, 'person-' || n || '@example.com', 'Oslo', 'secret-' || n FROM generate_series(1, 20) n;
INSERT INTO interests SELECT n, 'chess' FROM generate_series(1, 20, 2) n;
