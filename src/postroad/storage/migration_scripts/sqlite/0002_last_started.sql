-- compatible from: 1

-- The version of Postroad that started last: `postroad migrate --check` lists what changed since.
CREATE TABLE last_started (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    version TEXT NOT NULL
) STRICT, WITHOUT ROWID;
