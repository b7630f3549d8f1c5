-- compatible from: 12
-- The sizes of the accepted messages, summed. Hosts of an older version add nothing, so sums are too low until all are
-- upgraded and the contents from before are deleted.
ALTER TABLE hourly_counts ADD COLUMN message_bytes INTEGER NOT NULL DEFAULT 0;
