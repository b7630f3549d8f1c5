-- name: of_account
-- The saved views of an account by name.
SELECT id, account_id, name, search, created_at FROM saved_views WHERE account_id = $1 ORDER BY name;

-- name: put
-- Store a view, or a new search for the one with this name, which keeps its id.
INSERT INTO saved_views (account_id, id, name, search, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (account_id, name) DO UPDATE SET search = excluded.search;

-- name: rename
-- Give a view another name.
UPDATE saved_views SET name = $3 WHERE account_id = $1 AND id = $2;

-- name: remove
-- Delete a view.
DELETE FROM saved_views WHERE account_id = $1 AND id = $2;
