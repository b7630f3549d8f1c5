-- name: add
-- Count more on a day of some accounts, and tell what it has come to.
INSERT INTO sending_days (account_id, day, recipients, bounces, complaints)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
ON CONFLICT (account_id, day) DO UPDATE
SET recipients = sending_days.recipients + excluded.recipients, bounces = sending_days.bounces + excluded.bounces,
    complaints = sending_days.complaints + excluded.complaints
RETURNING account_id, recipients, bounces, complaints;

-- name: sums
-- What some accounts have come to since a day: one look into the index for each, however large the table.
SELECT wanted.account_id, days.recipients, days.bounces, days.complaints
FROM unnest($1::text[], $2::bigint[]) AS wanted (account_id, after_day)
CROSS JOIN LATERAL (
    SELECT sum(recipients)::bigint AS recipients, sum(bounces)::bigint AS bounces, sum(complaints)::bigint AS complaints
    FROM sending_days WHERE account_id = wanted.account_id AND day > wanted.after_day HAVING count(*) > 0) AS days;
