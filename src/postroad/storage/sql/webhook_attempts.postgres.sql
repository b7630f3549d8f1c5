-- name: insert
-- New attempts; a repeated one is ignored.
INSERT INTO webhook_attempts (account_id, webhook_id, delivery_id, number, started_at, duration, status_code, response_body,
    error)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[],
    $9::text[])
ON CONFLICT DO NOTHING;

-- name: of_deliveries
-- The attempts of deliveries.
SELECT one.account_id, one.webhook_id, one.delivery_id, number, started_at, duration, status_code, response_body, error
FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (account_id, webhook_id, delivery_id)
JOIN webhook_attempts AS one ON one.account_id = wanted.account_id AND one.webhook_id = wanted.webhook_id
    AND one.delivery_id = wanted.delivery_id;

-- name: remove
-- The attempts of deliveries that are swept.
DELETE FROM webhook_attempts USING unnest($1::text[], $2::text[], $3::text[]) AS swept (account_id, webhook_id, delivery_id)
WHERE webhook_attempts.account_id = swept.account_id AND webhook_attempts.webhook_id = swept.webhook_id
    AND webhook_attempts.delivery_id = swept.delivery_id;
