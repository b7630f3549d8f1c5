-- name: of_messages
-- Which of messages were sent again.
SELECT DISTINCT resend_of FROM resends
WHERE (account_id, resend_of) IN (SELECT * FROM unnest($1::text[], $2::text[]));
