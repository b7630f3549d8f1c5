-- part: route
SELECT inbound_routes.id, inbound_routes.account_id, domain_id, match_key, action, forward_to,
    inbound_routes.created_at

-- name: insert
-- A route, unless another one has its addresses.
INSERT INTO inbound_routes (id, account_id, domain_id, match_key, action, forward_to, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (match_key) DO NOTHING;

-- name: remove_lapsed
-- Delete the route with these addresses if it takes no mail: its domain is not verified any more, or is above the one
-- for which another account makes a route.
DELETE FROM inbound_routes WHERE match_key = $1 AND NOT EXISTS (
    SELECT 1 FROM domains WHERE domains.account_id = inbound_routes.account_id
        AND domains.id = inbound_routes.domain_id AND verified_at IS NOT NULL
        AND (domains.account_id = $2 OR LENGTH(name) >= (
            SELECT LENGTH(nearer.name) FROM domains AS nearer WHERE nearer.account_id = $2 AND nearer.id = $3)));

-- name: remove
-- Delete a route. Its mail stays.
DELETE FROM inbound_routes WHERE account_id = $1 AND id = $2;

-- name: by_id
-- A route of an account.
-- include: route
FROM inbound_routes WHERE account_id = $1 AND id = $2;

-- name: of_account
-- The routes of an account after a cursor, oldest first.
-- include: route
FROM inbound_routes WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3;

-- name: count
-- How many routes an account has.
SELECT COUNT(*) FROM inbound_routes WHERE account_id = $1;

-- name: matching
-- The routes with these addresses whose domain is verified, whether their account may receive, and the domain.
-- include: route
    , CASE WHEN accounts.status = 'active' AND closed_at IS NULL AND removed_at IS NULL THEN 1 ELSE 0 END, domains.name
FROM inbound_routes
JOIN domains ON domains.account_id = inbound_routes.account_id AND domains.id = domain_id
JOIN accounts ON accounts.id = inbound_routes.account_id
WHERE match_key IN ($1, $2, $3) AND verified_at IS NOT NULL;
