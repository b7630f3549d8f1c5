-- name: now
-- The time, in microseconds since 1970; SQLite knows milliseconds.
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000;
