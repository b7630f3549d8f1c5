-- part: message
SELECT account_id, id, route_id, recipient, envelope_sender, sender, subject, message_id_field, email_id, size,
    attachment_count, authentication, spam, client_address, fingerprint, has_body, received_at
FROM received_messages

-- name: insert
-- A mail, unless the account has it already.
INSERT INTO received_messages (account_id, id, route_id, recipient, envelope_sender, sender, subject, message_id_field,
    email_id, size, attachment_count, authentication, spam, client_address, fingerprint, has_body, received_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
ON CONFLICT (account_id, fingerprint) DO NOTHING;

-- name: insert_body
-- Its content.
INSERT INTO received_bodies (account_id, message_id, mime) VALUES ($1, $2, $3);

-- name: is_known
-- A row when an account has this mail already.
SELECT 1 FROM received_messages WHERE account_id = $1 AND fingerprint = $2;

-- name: by_id
-- A mail of an account.
-- include: message
WHERE account_id = $1 AND id = $2;

-- name: of_account
-- The mail of an account before a cursor, newest first; NULL matches every route, and every sender or subject.
-- include: message
WHERE account_id = $1 AND id < $2 AND (CAST($4 AS TEXT) IS NULL OR route_id = $4)
    AND (CAST($5 AS TEXT) IS NULL OR LOWER(sender) LIKE $5 ESCAPE '\' OR LOWER(subject) LIKE $5 ESCAPE '\')
ORDER BY id DESC LIMIT $3;

-- name: of_email
-- The answers to a message, oldest first.
-- include: message
WHERE account_id = $1 AND email_id = $2 ORDER BY id LIMIT $3;

-- name: body
-- The content of a mail of an account.
SELECT mime FROM received_bodies WHERE message_id = $2 AND account_id = $1;

-- name: remove_body
-- Delete the content of a mail.
DELETE FROM received_bodies WHERE message_id = $2 AND account_id = $1;

-- name: remove
-- Delete a mail.
DELETE FROM received_messages WHERE account_id = $1 AND id = $2;
