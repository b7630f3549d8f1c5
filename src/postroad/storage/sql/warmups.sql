-- name: find
-- The warm-up state of a domain.
SELECT account_id, domain, day, step, used FROM warmups WHERE account_id = $1 AND domain = $2;

-- name: put
-- A new warm-up state.
INSERT INTO warmups (account_id, domain, day, step, used) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (account_id, domain) DO UPDATE SET day = excluded.day, step = excluded.step, used = excluded.used;

-- name: forget
-- A domain whose last day with mail is over.
DELETE FROM warmups WHERE account_id = $1 AND domain = $2 AND day < $3;
