-- name: open
-- The certificate of an authority for a set of names, unless there is one; it is due at once.
INSERT INTO certificates
    (directory, names, chain, private_key, issued_at, expires_at, due_at, claimed_until, attempt_count, error)
VALUES ($1, $2, '', $3, 0, 0, 0, 0, 0, '')
ON CONFLICT (directory, names) DO NOTHING;

-- part: columns
directory, names, chain, private_key, issued_at, expires_at, due_at, claimed_until, attempt_count, error

-- name: find
-- The certificate of an authority for a set of names.
SELECT
-- include: columns
FROM certificates WHERE directory = $1 AND names = $2;

-- name: claim
-- Claim a certificate that is due by a time, unless another process has claimed it.
UPDATE certificates SET claimed_until = $5, due_at = $5, attempt_count = attempt_count + 1
WHERE directory = $1 AND names = $2 AND due_at <= $3 AND claimed_until <= $4
RETURNING
-- include: columns
;

-- name: put
-- A new certificate, which ends the claim.
UPDATE certificates
SET chain = $3, private_key = $4, issued_at = $5, expires_at = $6, due_at = $7,
    claimed_until = 0, attempt_count = 0, error = ''
WHERE directory = $1 AND names = $2;

-- name: postpone
-- An order that failed, which ends the claim.
UPDATE certificates SET due_at = $3, error = $4, claimed_until = 0 WHERE directory = $1 AND names = $2;
