-- Logins: failed attempts, counted for all processes and hosts, and the networks that users logged in from.

-- `counter` is a digest of a name, a network or both: nothing that a stranger typed is stored. `clear_at` is when all of its
-- failures are forgotten.
CREATE TABLE login_failures (
    counter BLOB NOT NULL PRIMARY KEY,
    clear_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX login_failures_over ON login_failures (clear_at);

-- Where a user logged in successfully; the latest few.
CREATE TABLE known_networks (
    user_id TEXT NOT NULL,
    network TEXT NOT NULL,
    last_login_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, network)
) STRICT, WITHOUT ROWID;
CREATE INDEX known_networks_over ON known_networks (last_login_at);
