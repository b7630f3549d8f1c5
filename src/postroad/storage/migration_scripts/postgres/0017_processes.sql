-- compatible from: 12
-- The processes that run the service, as they report themselves: which roles run, and on which hosts.
CREATE TABLE processes (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    host TEXT COLLATE "C" NOT NULL,
    process_id BIGINT NOT NULL,
    roles TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL
);

-- The free space of a file system, as a host measures it every hour: how fast its disk fills.
CREATE TABLE disk_samples (
    host TEXT COLLATE "C" NOT NULL,
    folder TEXT COLLATE "C" NOT NULL,
    sampled_at BIGINT NOT NULL,
    free_bytes BIGINT NOT NULL,
    PRIMARY KEY (host, folder, sampled_at)
);
