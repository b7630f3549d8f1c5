-- name: insert
-- New attempts; a repeated one is ignored.
INSERT INTO webhook_attempts (account_id, webhook_id, delivery_id, number, started_at, duration, status_code, response_body,
    error)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING;

-- name: of_deliveries
-- The attempts of deliveries.
SELECT account_id, webhook_id, delivery_id, number, started_at, duration, status_code, response_body, error
FROM webhook_attempts WHERE account_id = $1 AND webhook_id = $2 AND delivery_id = $3;

-- name: remove
-- The attempts of deliveries that are swept.
DELETE FROM webhook_attempts WHERE account_id = $1 AND webhook_id = $2 AND delivery_id = $3;
