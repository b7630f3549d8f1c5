-- Renames tables, columns and indexes to the terms of docs/glossary.md. No row changes.
-- Stop all processes before this migration: renames do not follow expand-then-contract, so an older process that still runs
-- fails on its next query. This is acceptable only before the first release.

ALTER TABLE queue RENAME COLUMN lane TO queue_key;
ALTER TABLE attempts RENAME COLUMN pool TO provider_queue;
ALTER TABLE domains RENAME COLUMN asked_at TO check_requested_at;

ALTER TABLE pools RENAME TO provider_queues;
ALTER TABLE late_bounces RENAME TO async_bounces;
ALTER TABLE sending_days RENAME TO bounce_guard_days;
ALTER TABLE traffic_hours RENAME TO hourly_counts;
ALTER TABLE journal RENAME TO audit_log;

ALTER INDEX sending_days_over RENAME TO bounce_guard_days_over;
ALTER INDEX traffic_hours_over RENAME TO hourly_counts_over;
ALTER INDEX journal_over RENAME TO audit_log_over;

-- Errors name the constraint that a row violates. NOT NULL constraints keep their names: their errors name the column.
ALTER TABLE provider_queues RENAME CONSTRAINT pools_pkey TO provider_queues_pkey;
ALTER TABLE provider_queues RENAME CONSTRAINT pools_state_check TO provider_queues_state_check;
ALTER TABLE async_bounces RENAME CONSTRAINT late_bounces_pkey TO async_bounces_pkey;
ALTER TABLE bounce_guard_days RENAME CONSTRAINT sending_days_pkey TO bounce_guard_days_pkey;
ALTER TABLE hourly_counts RENAME CONSTRAINT traffic_hours_pkey TO hourly_counts_pkey;
ALTER TABLE audit_log RENAME CONSTRAINT journal_pkey TO audit_log_pkey;
ALTER TABLE audit_log RENAME CONSTRAINT journal_actor_kind_check TO audit_log_actor_kind_check;
