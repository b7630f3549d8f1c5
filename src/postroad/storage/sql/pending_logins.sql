-- name: insert
-- A login whose password was right.
INSERT INTO pending_logins (token_hash, login_id, epoch, methods, expires_at, invitation)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: find
-- A login that waits for its second factor.
SELECT login_id, epoch, methods, expires_at, invitation FROM pending_logins WHERE token_hash = $1;

-- name: consume
-- The same, which is deleted.
DELETE FROM pending_logins WHERE token_hash = $1 RETURNING login_id, epoch, methods, expires_at, invitation;

-- name: sweep
-- Delete those that were not completed in time, up to a limit.
DELETE FROM pending_logins WHERE token_hash IN (
    SELECT token_hash FROM pending_logins WHERE expires_at <= $1 LIMIT $2);
