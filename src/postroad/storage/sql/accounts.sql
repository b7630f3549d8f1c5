-- part: columns
id, name, status, suspended_reason, available, reserved, created_at, suspended_by, suspended_at,
    closed_at, removed_at, unlimited, has_uncharged, subscribed_events, request_rate, recipients_per_day,
    second_factor_since, rate_full_at, rate_seen_at

-- name: insert
-- A new account without credits.
INSERT INTO accounts (id, name, name_key, status, suspended_reason, available, reserved, created_at)
VALUES ($1, $2, $3, 'active', NULL, 0, 0, $4);

-- name: by_id
-- One account.
SELECT
-- include: columns
FROM accounts WHERE id = $1;

-- name: by_name
-- The account with a name; a removed one has none.
SELECT
-- include: columns
FROM accounts WHERE name_key = $1;

-- name: page
-- Accounts in order of creation, after a cursor.
SELECT
-- include: columns
FROM accounts WHERE id > $1 AND removed_at IS NULL ORDER BY id LIMIT $2;

-- name: search
-- Accounts after a cursor whose name is like a pattern, or that have this id, domain or user, in one state or in any.
SELECT
-- include: columns
FROM accounts WHERE id > $1 AND removed_at IS NULL
    AND ($5 = '' OR $5 = CASE WHEN closed_at IS NOT NULL THEN 'closed' ELSE status END)
    AND (LOWER(name) LIKE $3 ESCAPE '!' OR name_key LIKE $3 ESCAPE '!' OR id = $4
        OR id IN (SELECT account_id FROM users WHERE email_key = $4)
        OR id IN (SELECT account_id FROM domains WHERE name = $4))
ORDER BY id LIMIT $2;

-- name: suspend
-- Suspend an account.
UPDATE accounts SET status = 'suspended', suspended_reason = $2, suspended_by = $3, suspended_at = $4 WHERE id = $1;

-- name: resume
-- Let an account send again.
UPDATE accounts SET status = 'active', suspended_reason = NULL, suspended_by = NULL, suspended_at = NULL WHERE id = $1;

-- name: cooled_down
-- Accounts that the bounce guard suspended up to a time, oldest first.
SELECT id FROM accounts WHERE suspended_by = 'bounce_guard' AND suspended_at <= $1 AND closed_at IS NULL ORDER BY suspended_at LIMIT $2;

-- name: lock
-- The accounts of a batch, locked until its end: SQLite's write transaction locks everything.
SELECT
-- include: columns
FROM accounts WHERE id = $1;

-- name: move_credits
-- Add to both balances; a CHECK keeps them from going below zero. Set the bucket; NULL keeps it.
UPDATE accounts SET available = available + $2, reserved = reserved + $3, rate_full_at = COALESCE($4, rate_full_at),
    rate_seen_at = COALESCE($5, rate_seen_at)
WHERE id = $1;

-- name: rename
-- Another name.
UPDATE accounts SET name = $2, name_key = $3 WHERE id = $1;

-- name: close
-- Close an account. It is suspended, too.
UPDATE accounts SET status = 'suspended', suspended_reason = $2, suspended_by = 'operator', suspended_at = $3, closed_at = $3
WHERE id = $1;

-- name: reopen
-- Open a closed account again.
UPDATE accounts SET status = 'active', suspended_reason = NULL, suspended_by = NULL, suspended_at = NULL, closed_at = NULL
WHERE id = $1;

-- name: set_unlimited
-- Whether an account sends without credits.
UPDATE accounts SET unlimited = $2 WHERE id = $1;

-- name: set_second_factor
-- Since when the users of an account need a second factor; NULL if they do not.
UPDATE accounts SET second_factor_since = CAST($2 AS BIGINT) WHERE id = $1;

-- name: set_limits
-- The limits of an account; NULL for those of the settings.
UPDATE accounts SET request_rate = $2, recipients_per_day = $3 WHERE id = $1;

-- name: note_uncharged
-- Accounts that have mail which was not charged.
UPDATE accounts SET has_uncharged = 1 WHERE id = $1;

-- part: low_on_credits
FROM accounts JOIN (
    SELECT account_id, SUM(recipients) AS recipients FROM hourly_counts WHERE hour >= $1 GROUP BY account_id
) AS used ON used.account_id = accounts.id
WHERE accounts.status = 'active' AND accounts.unlimited = 0 AND accounts.available < used.recipients

-- name: low_credit_count
-- Accounts that are active, need credits, and have fewer of them than they used in the days since an hour.
SELECT COUNT(*)
-- include: low_on_credits
;

-- name: low_on_credits
-- The same accounts: what they have, and what they used.
SELECT accounts.id, accounts.available, used.recipients
-- include: low_on_credits
ORDER BY accounts.id LIMIT $2;

-- name: uses_approvals
-- Whether a key of an account may need approvals, or a send from after a time waits for one.
SELECT 1
WHERE EXISTS (SELECT 1 FROM api_keys WHERE account_id = $1 AND revoked_at IS NULL AND approval_above IS NOT NULL)
    OR EXISTS (
        SELECT 1 FROM approvals WHERE account_id = $1 AND state IN ('pending', 'approving') AND created_at > $2
    );
