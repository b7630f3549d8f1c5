-- compatible from: 12
-- Changes that operators make to provider queues at run time, on all hosts: by the name of a provider queue, or `others`.
-- A limit that is NULL is that of the settings.
CREATE TABLE provider_overrides (
    name TEXT NOT NULL PRIMARY KEY,
    paused INTEGER NOT NULL CHECK (paused IN (0, 1)),
    connections INTEGER,
    messages_per_second INTEGER,
    messages_per_connection INTEGER,
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_at INTEGER NOT NULL,
    until INTEGER
) STRICT, WITHOUT ROWID;

-- Long work that an operator has started. The process that runs it reports its progress; one that no longer does has
-- stopped.
CREATE TABLE operator_jobs (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    state TEXT NOT NULL,
    done INTEGER NOT NULL,
    total INTEGER,
    result TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    finished_at INTEGER
) STRICT, WITHOUT ROWID;

-- What a process does in a second, as it reports itself: a JSON object; empty from an older version.
ALTER TABLE processes ADD COLUMN rates TEXT NOT NULL DEFAULT '';
