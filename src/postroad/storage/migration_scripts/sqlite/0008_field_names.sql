-- Renames tables, columns and indexes to the terms of docs/glossary.md. No row changes.
-- Stop all processes before this migration: renames do not follow expand-then-contract, so an older process that still runs
-- fails on its next query. This is acceptable only before the first release.
-- Unlike PostgreSQL, SQLite cannot rename an index, so those named after their table are created again.

ALTER TABLE queue RENAME COLUMN lane TO queue_key;
ALTER TABLE attempts RENAME COLUMN pool TO provider_queue;
ALTER TABLE domains RENAME COLUMN asked_at TO check_requested_at;

ALTER TABLE pools RENAME TO provider_queues;
ALTER TABLE late_bounces RENAME TO async_bounces;
ALTER TABLE sending_days RENAME TO bounce_guard_days;
ALTER TABLE traffic_hours RENAME TO hourly_counts;
ALTER TABLE journal RENAME TO audit_log;

DROP INDEX sending_days_over;
CREATE INDEX bounce_guard_days_over ON bounce_guard_days (day);
DROP INDEX traffic_hours_over;
CREATE INDEX hourly_counts_over ON hourly_counts (hour);
DROP INDEX journal_over;
CREATE INDEX audit_log_over ON audit_log (created_at);
