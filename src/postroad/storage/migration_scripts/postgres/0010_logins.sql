-- Logins: failed attempts, counted for all processes and hosts, and the networks that users logged in from.

-- `counter` is a digest of a name, a network or both: nothing that a stranger typed is stored. `clear_at` is when all of its
-- failures are forgotten.
CREATE TABLE login_failures (
    counter BYTEA NOT NULL PRIMARY KEY,
    clear_at BIGINT NOT NULL
);
CREATE INDEX login_failures_over ON login_failures (clear_at);

-- Where a user logged in successfully; the latest few.
CREATE TABLE known_networks (
    user_id TEXT COLLATE "C" NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
    last_login_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, network)
);
CREATE INDEX known_networks_over ON known_networks (last_login_at);
