-- name: budgets
-- The limits that are counted, and what was used of them.
SELECT api_keys.id, recipients_per_day, credit_budget, day, recipients, credits
FROM api_keys LEFT JOIN api_key_usage ON api_key_usage.key_id = api_keys.id
WHERE api_keys.id = ANY($1::text[]);

-- name: put_usage
-- What keys have sent.
INSERT INTO api_key_usage (key_id, account_id, day, recipients, credits)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
ON CONFLICT (key_id) DO UPDATE SET day = excluded.day, recipients = excluded.recipients, credits = excluded.credits;
