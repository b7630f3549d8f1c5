-- name: find
-- The warm-up states of domains: one index lookup for each, however large the table.
SELECT stored.account_id, stored.domain, stored.day, stored.step, stored.used
FROM unnest($1::text[], $2::text[]) AS wanted (account_id, domain)
CROSS JOIN LATERAL (
    SELECT account_id, domain, day, step, used FROM warmups
    WHERE account_id = wanted.account_id AND domain = wanted.domain LIMIT 1) AS stored;

-- name: put
-- New warm-up states.
INSERT INTO warmups (account_id, domain, day, step, used)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
ON CONFLICT (account_id, domain) DO UPDATE SET day = excluded.day, step = excluded.step, used = excluded.used;
