-- name: billing
-- What became of the credits of messages.
SELECT messages.id, billing_status
FROM unnest($1::text[], $2::text[]) AS wanted (account_id, message_id)
JOIN messages ON messages.account_id = wanted.account_id AND messages.id = wanted.message_id;
