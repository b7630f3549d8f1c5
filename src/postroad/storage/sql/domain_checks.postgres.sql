-- name: put
-- The result of a check.
INSERT INTO domain_checks (account_id, domain_id, purpose, state, detail, found, checked_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
ON CONFLICT (account_id, domain_id, purpose) DO UPDATE
SET state = excluded.state, detail = excluded.detail, found = excluded.found, checked_at = excluded.checked_at;
