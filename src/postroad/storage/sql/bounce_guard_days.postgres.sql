-- name: add
-- Add to the counts of a day, and return the new counts.
INSERT INTO bounce_guard_days (account_id, day, recipients, bounces, complaints)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
ON CONFLICT (account_id, day) DO UPDATE
SET recipients = bounce_guard_days.recipients + excluded.recipients, bounces = bounce_guard_days.bounces + excluded.bounces,
    complaints = bounce_guard_days.complaints + excluded.complaints
RETURNING account_id, recipients, bounces, complaints;

-- name: sums
-- The sums of accounts since a day: one index lookup for each, however large the table.
SELECT wanted.account_id, days.recipients, days.bounces, days.complaints
FROM unnest($1::text[], $2::bigint[]) AS wanted (account_id, after_day)
CROSS JOIN LATERAL (
    SELECT sum(recipients)::bigint AS recipients, sum(bounces)::bigint AS bounces, sum(complaints)::bigint AS complaints
    FROM bounce_guard_days WHERE account_id = wanted.account_id AND day > wanted.after_day HAVING count(*) > 0) AS days;
