-- name: lock
-- The accounts of a batch, locked in a fixed order, so that two hosts with the same accounts do not deadlock.
SELECT id, name, status, suspended_reason, available, reserved, created_at, suspended_by, suspended_at,
    closed_at, removed_at, unlimited, has_uncharged, subscribed_events, request_rate, recipients_per_day,
    second_factor_since, rate_full_at, rate_seen_at
FROM accounts WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE;

-- name: move_credits
-- Add to both balances; a CHECK keeps them from going below zero. Set the bucket; NULL keeps it. Rows are locked
-- in the order of `lock` first.
WITH locked AS MATERIALIZED (SELECT id FROM accounts WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE)
UPDATE accounts SET available = accounts.available + move.available, reserved = accounts.reserved + move.reserved,
    rate_full_at = COALESCE(move.full_at, rate_full_at), rate_seen_at = COALESCE(move.seen_at, rate_seen_at)
FROM locked JOIN unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
    AS move (id, available, reserved, full_at, seen_at) ON move.id = locked.id
WHERE accounts.id = locked.id;
