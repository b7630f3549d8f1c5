-- compatible from: 1

-- The version of Postroad that started last: `postroad migrate --check` lists what changed since.
CREATE TABLE last_started (
    only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    version TEXT COLLATE "C" NOT NULL
);
