-- `user_id` is the id of a user or of an SMTP credential.

-- name: find
-- The last recorded login from a network.
SELECT last_login_at FROM known_networks WHERE user_id = $1 AND network = $2;

-- name: of_owner
-- The networks of a user.
SELECT network FROM known_networks WHERE user_id = $1;

-- name: put
-- A login from a network.
INSERT INTO known_networks (user_id, network, last_login_at) VALUES ($1, $2, $3)
ON CONFLICT (user_id, network) DO UPDATE SET last_login_at = excluded.last_login_at;

-- name: remove_oldest
-- Keep the latest networks of a user.
DELETE FROM known_networks WHERE user_id = $1 AND network IN (
    SELECT network FROM known_networks WHERE user_id = $1 ORDER BY last_login_at DESC, network LIMIT 1000 OFFSET $2);

-- name: remove
-- Delete the networks of a user.
DELETE FROM known_networks WHERE user_id = $1;

-- name: sweep
-- Delete networks without a recent login, up to a limit.
DELETE FROM known_networks WHERE (user_id, network) IN (
    SELECT user_id, network FROM known_networks WHERE last_login_at < $1 LIMIT $2);
