-- name: add
-- Count more in an hour of an account.
INSERT INTO traffic_hours (account_id, hour, provider, messages, recipients, delivered, bounced, failed, deferred)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (account_id, hour, provider) DO UPDATE
SET messages = traffic_hours.messages + excluded.messages, recipients = traffic_hours.recipients + excluded.recipients,
    delivered = traffic_hours.delivered + excluded.delivered, bounced = traffic_hours.bounced + excluded.bounced,
    failed = traffic_hours.failed + excluded.failed, deferred = traffic_hours.deferred + excluded.deferred;

-- name: sums
-- What an account has come to between two hours, by stretches of $4 hours and by provider. It has a few rows an hour.
SELECT (hour - $2) / $4 AS place, provider, CAST(SUM(messages) AS BIGINT), CAST(SUM(recipients) AS BIGINT),
    CAST(SUM(delivered) AS BIGINT), CAST(SUM(bounced) AS BIGINT), CAST(SUM(failed) AS BIGINT),
    CAST(SUM(deferred) AS BIGINT)
FROM traffic_hours WHERE account_id = $1 AND hour >= $2 AND hour < $3
GROUP BY place, provider;

-- name: since
-- What an account has come to from an hour on.
SELECT CAST(SUM(messages) AS BIGINT), CAST(SUM(recipients) AS BIGINT), CAST(SUM(delivered) AS BIGINT),
    CAST(SUM(bounced) AS BIGINT), CAST(SUM(failed) AS BIGINT), CAST(SUM(deferred) AS BIGINT)
FROM traffic_hours WHERE account_id = $1 AND hour >= $2;

-- name: sweep
-- Forget hours that nobody looks at any more, some at a time.
DELETE FROM traffic_hours WHERE (account_id, hour, provider) IN (
    SELECT account_id, hour, provider FROM traffic_hours WHERE hour <= $1 ORDER BY hour LIMIT $2);
