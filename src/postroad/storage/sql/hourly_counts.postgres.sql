-- name: add
-- Add to the counts of hours.
INSERT INTO hourly_counts (account_id, hour, provider, messages, recipients, delivered, bounced, failed, deferred,
    delivery_time, message_bytes)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
ON CONFLICT (account_id, hour, provider) DO UPDATE
SET messages = hourly_counts.messages + excluded.messages, recipients = hourly_counts.recipients + excluded.recipients,
    delivered = hourly_counts.delivered + excluded.delivered, bounced = hourly_counts.bounced + excluded.bounced,
    failed = hourly_counts.failed + excluded.failed, deferred = hourly_counts.deferred + excluded.deferred,
    delivery_time = hourly_counts.delivery_time + excluded.delivery_time,
    message_bytes = hourly_counts.message_bytes + excluded.message_bytes;
