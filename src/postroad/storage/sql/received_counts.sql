-- name: add
-- Count a mail, and return what there is of the day.
INSERT INTO received_counts (account_id, day, network, messages, bytes) VALUES ($1, $2, $3, 1, $4)
ON CONFLICT (account_id, day, network) DO UPDATE
SET messages = received_counts.messages + 1, bytes = received_counts.bytes + excluded.bytes
RETURNING messages, bytes;

-- name: of_day
-- What there is of a day.
SELECT messages, bytes FROM received_counts WHERE account_id = $1 AND day = $2 AND network = $3;

-- name: sweep
-- Delete the counts of days that are over.
DELETE FROM received_counts WHERE (account_id, day, network) IN (
    SELECT account_id, day, network FROM received_counts WHERE day <= $1 ORDER BY day LIMIT $2);
