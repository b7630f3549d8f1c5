-- compatible from: 12
-- The time zone of a person, by its name in the IANA database; none until one is chosen.
ALTER TABLE users ADD COLUMN time_zone TEXT COLLATE "C";
