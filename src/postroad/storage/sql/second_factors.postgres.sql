-- name: insert_codes
-- Recovery codes.
INSERT INTO recovery_codes (login_id, code_hash) SELECT * FROM unnest($1::text[], $2::bytea[]);
