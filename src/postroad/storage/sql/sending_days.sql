-- name: add
-- Count more on a day of an account, and tell what it has come to.
INSERT INTO sending_days (account_id, day, recipients, bounces, complaints) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (account_id, day) DO UPDATE
SET recipients = sending_days.recipients + excluded.recipients, bounces = sending_days.bounces + excluded.bounces,
    complaints = sending_days.complaints + excluded.complaints
RETURNING account_id, recipients, bounces, complaints;

-- name: sums
-- What an account has come to since a day.
SELECT account_id, sum(recipients), sum(bounces), sum(complaints) FROM sending_days
WHERE account_id = $1 AND day > $2 GROUP BY account_id;

-- name: forget
-- A clean slate for an account.
DELETE FROM sending_days WHERE account_id = $1;

-- name: sweep
-- Forget days that nobody looks at any more, some at a time.
DELETE FROM sending_days WHERE (account_id, day) IN (
    SELECT account_id, day FROM sending_days WHERE day <= $1 ORDER BY day LIMIT $2);
