-- name: open
-- The certificate of a set of names, unless there is one; it is due at once.
INSERT INTO certificates (names, chain, private_key, issued_at, expires_at, due_at, claimed_until, attempt_count, error)
VALUES ($1, '', $2, 0, 0, 0, 0, 0, '')
ON CONFLICT (names) DO NOTHING;

-- name: find
-- The certificate of a set of names.
SELECT names, chain, private_key, issued_at, expires_at, due_at, claimed_until, attempt_count, error
FROM certificates WHERE names = $1;

-- name: claim
-- Claim a certificate that is due by a time, unless another process has claimed it.
UPDATE certificates SET claimed_until = $4, due_at = $4, attempt_count = attempt_count + 1
WHERE names = $1 AND due_at <= $2 AND claimed_until <= $3
RETURNING names, chain, private_key, issued_at, expires_at, due_at, claimed_until, attempt_count, error;

-- name: put
-- A new certificate, which ends the claim.
UPDATE certificates
SET chain = $2, private_key = $3, issued_at = $4, expires_at = $5, due_at = $6,
    claimed_until = 0, attempt_count = 0, error = ''
WHERE names = $1;

-- name: postpone
-- An order that failed, which ends the claim.
UPDATE certificates SET due_at = $2, error = $3, claimed_until = 0 WHERE names = $1;
