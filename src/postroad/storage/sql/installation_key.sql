-- name: fingerprint
-- The fingerprint of the installation key; no row before the first process with a key.
SELECT fingerprint FROM installation_key;

-- name: lock
-- The same, and the key stays the current one until the transaction ends: SQLite's write transaction locks everything.
SELECT fingerprint FROM installation_key;

-- name: remember
-- The fingerprint of a database that has none.
INSERT INTO installation_key (only_row, fingerprint) VALUES (1, $1) ON CONFLICT (only_row) DO NOTHING;

-- name: replace
-- The fingerprint of a new key.
UPDATE installation_key SET fingerprint = $1;

-- name: previous
-- The keys that were replaced, newest first.
SELECT fingerprint, installation_key, replaced_at FROM previous_keys ORDER BY replaced_at DESC, fingerprint;

-- name: add_previous
-- A key that is replaced; one that was used before is replaced again.
INSERT INTO previous_keys (fingerprint, installation_key, replaced_at) VALUES ($1, $2, $3)
ON CONFLICT (fingerprint) DO UPDATE SET installation_key = excluded.installation_key, replaced_at = excluded.replaced_at;

-- name: remove_previous
-- A replaced key.
DELETE FROM previous_keys WHERE fingerprint = $1;

-- name: sweep_previous
-- Keys that were replaced before a time.
DELETE FROM previous_keys WHERE replaced_at < $1;
