-- name: insert
-- Entries of the ledger.
INSERT INTO ledger (id, account_id, kind, available, reserved, message_id, note, created_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::bigint[]);
