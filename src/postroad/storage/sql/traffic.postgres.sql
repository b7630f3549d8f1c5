-- name: add
-- Count more in hours of accounts.
INSERT INTO traffic_hours (account_id, hour, provider, messages, recipients, delivered, bounced, failed, deferred)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[])
ON CONFLICT (account_id, hour, provider) DO UPDATE
SET messages = traffic_hours.messages + excluded.messages, recipients = traffic_hours.recipients + excluded.recipients,
    delivered = traffic_hours.delivered + excluded.delivered, bounced = traffic_hours.bounced + excluded.bounced,
    failed = traffic_hours.failed + excluded.failed, deferred = traffic_hours.deferred + excluded.deferred;
