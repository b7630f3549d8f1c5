-- name: insert
-- A message was sent again as another.
INSERT INTO resends (account_id, resend_of, message_id) VALUES ($1, $2, $3);

-- name: of_message
-- As which messages one was sent again, newest first.
SELECT message_id FROM resends WHERE account_id = $1 AND resend_of = $2 ORDER BY message_id DESC LIMIT $3;

-- name: of_messages
-- Which of messages were sent again.
SELECT DISTINCT resend_of FROM resends WHERE account_id = $1 AND resend_of = $2;
