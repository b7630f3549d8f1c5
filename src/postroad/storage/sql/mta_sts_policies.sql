-- name: put
-- The policy of a domain; the one that was fetched last counts.
INSERT INTO mta_sts_policies (domain, policy_id, policy, fetched_at, valid_until) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (domain) DO UPDATE
SET policy_id = excluded.policy_id, policy = excluded.policy, fetched_at = excluded.fetched_at,
    valid_until = excluded.valid_until
WHERE mta_sts_policies.fetched_at <= excluded.fetched_at;

-- name: find
-- The policy of a domain, unless it has expired.
SELECT domain, policy_id, policy, fetched_at, valid_until FROM mta_sts_policies WHERE domain = $1 AND valid_until > $2;

-- name: sweep
-- Delete expired policies, up to a limit.
DELETE FROM mta_sts_policies WHERE domain IN (
    SELECT domain FROM mta_sts_policies WHERE valid_until <= $1 ORDER BY valid_until LIMIT $2);

-- name: trim
-- Delete the policies beyond the $1 that were fetched last, up to a limit. One in use is fetched every day.
DELETE FROM mta_sts_policies WHERE domain IN (
    SELECT domain FROM mta_sts_policies ORDER BY fetched_at DESC LIMIT $2 OFFSET $1);
