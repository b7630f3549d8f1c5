-- compatible from: 12
-- The processes that run the service, as they report themselves: which roles run, and on which hosts.
CREATE TABLE processes (
    name TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    process_id INTEGER NOT NULL,
    roles TEXT NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The free space of a file system, as a host measures it every hour: how fast its disk fills.
CREATE TABLE disk_samples (
    host TEXT NOT NULL,
    folder TEXT NOT NULL,
    sampled_at INTEGER NOT NULL,
    free_bytes INTEGER NOT NULL,
    PRIMARY KEY (host, folder, sampled_at)
) STRICT, WITHOUT ROWID;
