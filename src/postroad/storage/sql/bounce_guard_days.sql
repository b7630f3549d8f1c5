-- name: add
-- Add to the counts of a day, and return the new counts.
INSERT INTO bounce_guard_days (account_id, day, recipients, bounces, complaints) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (account_id, day) DO UPDATE
SET recipients = bounce_guard_days.recipients + excluded.recipients, bounces = bounce_guard_days.bounces + excluded.bounces,
    complaints = bounce_guard_days.complaints + excluded.complaints
RETURNING account_id, recipients, bounces, complaints;

-- name: sums
-- The sums of an account since a day.
SELECT account_id, sum(recipients), sum(bounces), sum(complaints) FROM bounce_guard_days
WHERE account_id = $1 AND day > $2 GROUP BY account_id;

-- name: forget
-- Reset the counts of an account.
DELETE FROM bounce_guard_days WHERE account_id = $1;

-- name: sweep
-- Delete old days, up to a limit.
DELETE FROM bounce_guard_days WHERE (account_id, day) IN (
    SELECT account_id, day FROM bounce_guard_days WHERE day <= $1 ORDER BY day LIMIT $2);

-- name: count_report
-- Note that a report with a key counted on a day; no row when one counted after another day already.
INSERT INTO bounce_guard_reports (account_id, report_key, day) VALUES ($1, $2, $3)
ON CONFLICT (account_id, report_key) DO UPDATE SET day = excluded.day WHERE bounce_guard_reports.day <= $4
RETURNING account_id;

-- name: sweep_reports
-- Delete keys of reports that counted on old days, up to a limit.
DELETE FROM bounce_guard_reports WHERE (account_id, report_key) IN (
    SELECT account_id, report_key FROM bounce_guard_reports WHERE day <= $1 ORDER BY day LIMIT $2);
