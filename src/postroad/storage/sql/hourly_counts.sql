-- name: add
-- Add to the counts of an hour.
INSERT INTO hourly_counts (account_id, hour, provider, messages, recipients, delivered, bounced, failed, deferred,
    delivery_time, message_bytes)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (account_id, hour, provider) DO UPDATE
SET messages = hourly_counts.messages + excluded.messages, recipients = hourly_counts.recipients + excluded.recipients,
    delivered = hourly_counts.delivered + excluded.delivered, bounced = hourly_counts.bounced + excluded.bounced,
    failed = hourly_counts.failed + excluded.failed, deferred = hourly_counts.deferred + excluded.deferred,
    delivery_time = hourly_counts.delivery_time + excluded.delivery_time,
    message_bytes = hourly_counts.message_bytes + excluded.message_bytes;

-- name: sums
-- The counts of an account between two hours, in buckets of $4 hours, by provider. There are a few rows an hour.
SELECT (hour - $2) / $4 AS bucket, provider, CAST(SUM(messages) AS BIGINT), CAST(SUM(recipients) AS BIGINT),
    CAST(SUM(delivered) AS BIGINT), CAST(SUM(bounced) AS BIGINT), CAST(SUM(failed) AS BIGINT),
    CAST(SUM(deferred) AS BIGINT)
FROM hourly_counts WHERE account_id = $1 AND hour >= $2 AND hour < $3
GROUP BY bucket, provider;

-- name: since
-- The counts of an account from an hour on.
SELECT CAST(SUM(messages) AS BIGINT), CAST(SUM(recipients) AS BIGINT), CAST(SUM(delivered) AS BIGINT),
    CAST(SUM(bounced) AS BIGINT), CAST(SUM(failed) AS BIGINT), CAST(SUM(deferred) AS BIGINT)
FROM hourly_counts WHERE account_id = $1 AND hour >= $2;

-- name: by_provider
-- The counts of all accounts from an hour on, by provider.
SELECT provider, CAST(SUM(recipients) AS BIGINT), CAST(SUM(delivered) AS BIGINT), CAST(SUM(bounced) AS BIGINT),
    CAST(SUM(failed) AS BIGINT), CAST(SUM(deferred) AS BIGINT), CAST(SUM(delivery_time) AS BIGINT)
FROM hourly_counts WHERE hour >= $1 GROUP BY provider ORDER BY provider;

-- name: by_hour
-- The counts of all accounts from an hour on, by hour and provider.
SELECT hour - $1 AS bucket, provider, CAST(SUM(messages) AS BIGINT), CAST(SUM(recipients) AS BIGINT),
    CAST(SUM(delivered) AS BIGINT), CAST(SUM(bounced) AS BIGINT), CAST(SUM(failed) AS BIGINT),
    CAST(SUM(deferred) AS BIGINT)
FROM hourly_counts WHERE hour >= $1 GROUP BY bucket, provider;

-- name: bytes_by_account
-- The bytes of what each account sent from an hour on, with $2 for each recipient. Accepted mail has no provider.
SELECT account_id, CAST(SUM(message_bytes + $2 * recipients) AS BIGINT) FROM hourly_counts
WHERE hour >= $1 AND provider = '' GROUP BY account_id;

-- name: sweep
-- Delete old hours, up to a limit.
DELETE FROM hourly_counts WHERE (account_id, hour, provider) IN (
    SELECT account_id, hour, provider FROM hourly_counts WHERE hour <= $1 ORDER BY hour LIMIT $2);
