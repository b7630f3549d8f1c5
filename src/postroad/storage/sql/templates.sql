-- name: put
-- Create a template or replace the one with this alias, which keeps its id and creation time.
INSERT INTO templates (id, account_id, alias, subject, text, html, created_at, updated_at)
VALUES ($1, $2, $3, $4, CAST($5 AS TEXT), CAST($6 AS TEXT), $7, $7)
ON CONFLICT (account_id, alias) DO UPDATE
SET subject = excluded.subject, text = excluded.text, html = excluded.html, updated_at = excluded.updated_at
RETURNING id, account_id, alias, subject, text, html, created_at, updated_at;

-- name: by_alias
-- One template of an account.
SELECT id, account_id, alias, subject, text, html, created_at, updated_at
FROM templates WHERE account_id = $1 AND alias = $2;

-- name: page
-- The templates of an account by alias, after a cursor.
SELECT id, account_id, alias, subject, text, html, created_at, updated_at
FROM templates WHERE account_id = $1 AND alias > $2 ORDER BY alias LIMIT $3;

-- name: summaries
-- The same without bodies, which can be large.
SELECT id, alias, subject, text IS NOT NULL, html IS NOT NULL, created_at, updated_at
FROM templates WHERE account_id = $1 AND alias > $2 ORDER BY alias LIMIT $3;

-- name: remove
-- Delete a template.
DELETE FROM templates WHERE account_id = $1 AND alias = $2;

-- name: count
-- How many templates an account has.
SELECT COUNT(*) FROM templates WHERE account_id = $1;
