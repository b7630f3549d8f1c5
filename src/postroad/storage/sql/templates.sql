-- name: put
-- Create a template or replace the one with this alias, which keeps its id and creation time.
INSERT INTO templates (id, account_id, alias, subject, text, html, created_at, updated_at, version, layout, uses)
VALUES ($1, $2, $3, $4, CAST($5 AS TEXT), CAST($6 AS TEXT), $7, $7, $8, CAST($9 AS TEXT), CAST($10 AS TEXT))
ON CONFLICT (account_id, alias) DO UPDATE
SET subject = excluded.subject, text = excluded.text, html = excluded.html, updated_at = excluded.updated_at,
    version = excluded.version, layout = excluded.layout, uses = excluded.uses
RETURNING id, account_id, alias, subject, text, html, created_at, updated_at, version, layout, uses;

-- name: by_alias
-- One template of an account.
SELECT id, account_id, alias, subject, text, html, created_at, updated_at, version, layout, uses
FROM templates WHERE account_id = $1 AND alias = $2;

-- name: summaries
-- The templates of an account by alias, after a cursor, without bodies, which can be large; all or what is published.
SELECT id, alias, subject, text IS NOT NULL, html IS NOT NULL, created_at, updated_at
FROM templates WHERE account_id = $1 AND alias > $2 AND (text IS NOT NULL OR html IS NOT NULL OR NOT $4)
ORDER BY alias LIMIT $3;

-- name: layouts
-- The aliases of layouts: what has a place for content.
SELECT alias FROM templates WHERE account_id = $1
    AND (REPLACE(html, ' ', '') LIKE '%{{>content}}%' OR REPLACE(text, ' ', '') LIKE '%{{>content}}%')
ORDER BY alias LIMIT $2;

-- name: aliases
-- The aliases of an account like a pattern.
SELECT alias FROM templates WHERE account_id = $1 AND alias LIKE $2 ESCAPE '!';

-- name: remove
-- Delete a template.
DELETE FROM templates WHERE account_id = $1 AND alias = $2;

-- name: count
-- How many templates an account has.
SELECT COUNT(*) FROM templates WHERE account_id = $1;

-- name: user_of
-- A template that uses another as its layout or a part of it.
SELECT alias FROM templates WHERE account_id = $1 AND uses LIKE $2 ESCAPE '!' ORDER BY alias LIMIT 1;

-- name: add_version
-- Store a version.
INSERT INTO template_versions
    (template_id, number, account_id, saved_at, saved_by, published_at, layout, subject, text, html, sample)
VALUES ($1, $2, $3, $4, $5, CAST($6 AS BIGINT), CAST($7 AS TEXT), $8, CAST($9 AS TEXT), CAST($10 AS TEXT),
    CAST($11 AS TEXT));

-- name: publish_version
-- Mark a version as published.
UPDATE template_versions SET published_at = $3 WHERE template_id = $1 AND number = $2;

-- name: keep_sample
-- Replace the sample values of a version.
UPDATE template_versions SET sample = CAST($3 AS TEXT) WHERE template_id = $1 AND number = $2;

-- name: version
-- One version of a template of an account.
SELECT template_id, number, account_id, saved_at, saved_by, published_at, layout, subject, text, html, sample
FROM template_versions WHERE template_id = $1 AND number = $2 AND account_id = $3;

-- name: latest_version
-- The version that was saved last.
SELECT template_id, number, account_id, saved_at, saved_by, published_at, layout, subject, text, html, sample
FROM template_versions WHERE template_id = $1 ORDER BY number DESC LIMIT 1;

-- name: versions
-- The versions of a template without their content, the latest first.
SELECT number, saved_at, saved_by, published_at, subject
FROM template_versions WHERE template_id = $1 ORDER BY number DESC LIMIT $2;

-- name: forget_versions
-- Delete old versions, except the published one.
DELETE FROM template_versions WHERE template_id = $1 AND number <= $2 AND number <> $3;

-- name: remove_versions
-- Delete all versions of a template.
DELETE FROM template_versions WHERE template_id = $1;
