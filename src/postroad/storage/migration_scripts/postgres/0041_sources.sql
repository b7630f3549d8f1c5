-- compatible from: 12
-- The name of the source address that an attempt was made from; empty where the system chose it.
ALTER TABLE attempts ADD COLUMN source TEXT COLLATE "C" NOT NULL DEFAULT '';
