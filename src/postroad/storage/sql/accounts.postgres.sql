-- name: lock
-- The accounts of a batch, locked in a fixed order, so that two hosts with the same accounts do not deadlock.
SELECT id, name, status, suspended_reason, available, reserved, created_at, suspended_by, suspended_at,
    closed_at, removed_at, unlimited, has_uncharged, subscribed_events, request_rate, recipients_per_day,
    second_factor_since
FROM accounts WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE;

-- name: move_credits
-- Add to both balances; a CHECK keeps them from going below zero. Rows are locked in the order of `lock` first.
WITH locked AS MATERIALIZED (SELECT id FROM accounts WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE)
UPDATE accounts SET available = accounts.available + move.available, reserved = accounts.reserved + move.reserved
FROM locked JOIN unnest($1::text[], $2::bigint[], $3::bigint[]) AS move (id, available, reserved) ON move.id = locked.id
WHERE accounts.id = locked.id;
