-- compatible from: 12
-- Changes that operators make to provider queues at run time, on all hosts: by the name of a provider queue, or `others`.
-- A limit that is NULL is that of the settings.
CREATE TABLE provider_overrides (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    paused BIGINT NOT NULL CHECK (paused IN (0, 1)),
    connections BIGINT,
    messages_per_second BIGINT,
    messages_per_connection BIGINT,
    reason TEXT COLLATE "C" NOT NULL,
    set_by TEXT COLLATE "C" NOT NULL,
    set_at BIGINT NOT NULL,
    until BIGINT
);

-- Long work that an operator has started. The process that runs it reports its progress; one that no longer does has
-- stopped.
CREATE TABLE operator_jobs (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    done BIGINT NOT NULL,
    total BIGINT,
    result TEXT COLLATE "C" NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    finished_at BIGINT
);

-- What a process does in a second, as it reports itself: a JSON object; empty from an older version.
ALTER TABLE processes ADD COLUMN rates TEXT COLLATE "C" NOT NULL DEFAULT '';
