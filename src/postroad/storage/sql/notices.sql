-- name: insert
-- A notice, unless there has been one of this kind about the same subject since a time.
INSERT INTO notices (id, kind, account_id, user_id, subject, content, created_at, resolved_at)
SELECT $1, $2, $3, $4, $5, $6, $7, NULL
WHERE NOT EXISTS (SELECT 1 FROM notices WHERE kind = $2 AND subject = $5 AND created_at > $8);

-- name: count
-- How many notices of a kind about an account, or to one of its users, there have been since a time.
SELECT COUNT(*) FROM notices
WHERE account_id = $1 AND kind = $2 AND created_at > $3 AND user_id = COALESCE(CAST($4 AS TEXT), user_id);

-- name: unresolved
-- Notices of which it is not known yet who gets them, oldest first.
SELECT id, kind, account_id, user_id, subject, content, created_at FROM notices
WHERE resolved_at IS NULL ORDER BY id LIMIT $1;

-- name: resolve
-- Note that it is known now; nothing when another process was first.
UPDATE notices SET resolved_at = $2 WHERE id = $1 AND resolved_at IS NULL;

-- name: insert_mail
-- Somebody who gets a notice.
INSERT INTO notice_mails (user_id, notice_id, is_digest, due_at, sent_at) VALUES ($1, $2, $3, $4, NULL);

-- name: due
-- Mails that are due, the first ones first.
SELECT m.user_id, m.is_digest, m.due_at, n.id, n.kind, n.account_id, n.user_id, n.subject, n.content, n.created_at
FROM notice_mails m JOIN notices n ON n.id = m.notice_id
WHERE m.sent_at IS NULL AND m.due_at <= $1 ORDER BY m.due_at, m.user_id, m.notice_id LIMIT $2;

-- name: sent_since
-- How many notices of a kind a person has got one by one since a time.
SELECT COUNT(*) FROM notice_mails m JOIN notices n ON n.id = m.notice_id
WHERE m.user_id = $1 AND m.sent_at > $2 AND m.is_digest = 0 AND n.kind = $3;

-- name: mark_sent
-- Note that a mail is sent, or that it will not be.
UPDATE notice_mails SET sent_at = $3 WHERE user_id = $1 AND notice_id = $2 AND sent_at IS NULL;

-- name: postpone
-- Another time for a mail, and whether it is part of a digest.
UPDATE notice_mails SET due_at = $3, is_digest = $4 WHERE user_id = $1 AND notice_id = $2 AND sent_at IS NULL;

-- name: forget_content
-- Delete the values of a notice, which has been sent.
UPDATE notices SET content = '{}' WHERE id = $1;

-- name: choices
-- What a person has chosen.
SELECT kind, choice FROM notice_choices WHERE user_id = $1;

-- name: choose
-- Note a choice.
INSERT INTO notice_choices (user_id, kind, choice) VALUES ($1, $2, $3)
ON CONFLICT (user_id, kind) DO UPDATE SET choice = excluded.choice;

-- name: remove_choices
-- Delete the choices of a person.
DELETE FROM notice_choices WHERE user_id = $1;

-- name: sweep
-- Delete old notices, up to a limit.
DELETE FROM notices WHERE id IN (SELECT id FROM notices WHERE created_at < $1 LIMIT $2);

-- name: sweep_mails
-- Delete who got them.
DELETE FROM notice_mails WHERE (user_id, notice_id) IN (
    SELECT user_id, notice_id FROM notice_mails WHERE due_at < $1 LIMIT $2);
