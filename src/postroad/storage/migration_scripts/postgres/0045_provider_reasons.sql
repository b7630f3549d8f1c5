-- compatible from: 12
-- A pause and changed limits of a provider queue have a reason and an end each. `reason` and `until` are still written,
-- for hosts of an older version: the reason of one of the two, and the later end. Where `split_at` is not `set_at`, such a
-- host has written the row, and both have what it wrote.
ALTER TABLE provider_overrides ADD COLUMN pause_reason TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE provider_overrides ADD COLUMN pause_until BIGINT;
ALTER TABLE provider_overrides ADD COLUMN limits_reason TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE provider_overrides ADD COLUMN limits_until BIGINT;
ALTER TABLE provider_overrides ADD COLUMN split_at BIGINT;

-- Microseconds from the time at which mail was queued to its delivery, summed over the recipients that are counted as
-- delivered. Hosts of an older version add nothing, so means are too low until all are upgraded.
ALTER TABLE hourly_counts ADD COLUMN delivery_time BIGINT NOT NULL DEFAULT 0;
