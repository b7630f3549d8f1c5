-- part: names
    LEFT JOIN api_keys ON api_keys.id = caller_id AND api_keys.account_id = log.account_id
    LEFT JOIN credentials ON credentials.id = caller_id AND credentials.account_id = log.account_id
    LEFT JOIN users ON users.id = caller_id AND users.account_id = log.account_id

-- part: row
SELECT log.account_id, log.id, caller_id, method, path, status, code, error, client_address, body_size, body, skipped,
    log.created_at, COALESCE(api_keys.name, credentials.name, users.email, '')
FROM request_log AS log

-- name: insert
-- A new request.
INSERT INTO request_log (account_id, id, caller_id, method, path, status, code, error, client_address, body_size, body,
    skipped, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: trim
-- Delete the oldest requests of an account: those beyond a number, or beyond so many octets of bodies.
DELETE FROM request_log WHERE account_id = $1 AND id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER newest AS place, sum(length(body)) OVER newest AS octets
        FROM request_log WHERE account_id = $1 WINDOW newest AS (ORDER BY id DESC)
    ) AS placed WHERE place > $2 OR octets > $3);

-- name: page
-- Requests of an account between two cursors, with a status between two and of a caller, if one is given; newest first.
-- include: row
-- include: names
WHERE log.account_id = $1 AND log.id < $2 AND log.id >= $3 AND status >= $4 AND status < $5
    AND ($6 = '' OR caller_id = $6)
ORDER BY log.id DESC LIMIT $7;

-- name: by_id
-- A request of an account.
-- include: row
-- include: names
WHERE log.account_id = $1 AND log.id = $2;

-- name: callers
-- The callers of the requests of an account, with their names.
SELECT DISTINCT caller_id, COALESCE(api_keys.name, credentials.name, users.email, '') AS name
FROM request_log AS log
-- include: names
WHERE log.account_id = $1
ORDER BY name, caller_id;

-- name: sweep
-- Delete requests from before a time, up to a limit.
DELETE FROM request_log WHERE (account_id, id) IN (
    SELECT account_id, id FROM request_log WHERE created_at < $1 LIMIT $2);
