-- name: insert
-- New requests.
INSERT INTO request_log (account_id, id, caller_id, method, path, status, code, error, client_address, body_size, body,
    skipped, created_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[],
    $9::text[], $10::bigint[], $11::bytea[], $12::bigint[], $13::bigint[]);
