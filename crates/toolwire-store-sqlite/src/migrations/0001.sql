CREATE TABLE task (
    row INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    owner BLOB NOT NULL,
    quota BLOB NOT NULL,
    format INTEGER NOT NULL,
    key BLOB,
    tool TEXT NOT NULL,
    revision INTEGER NOT NULL,
    version TEXT NOT NULL,
    session BLOB,
    request TEXT NOT NULL,
    created INTEGER NOT NULL,
    keep INTEGER NOT NULL,
    ttl INTEGER NOT NULL,
    poll INTEGER NOT NULL,
    phase INTEGER NOT NULL,
    due INTEGER,
    floor INTEGER NOT NULL,
    works INTEGER NOT NULL,
    until INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    node BLOB,
    token BLOB,
    lease INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    written INTEGER NOT NULL,
    held INTEGER NOT NULL,
    parked_at INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    open TEXT NOT NULL,
    answered TEXT NOT NULL,
    note TEXT NOT NULL,
    outcome TEXT,
    is_error INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    rev INTEGER NOT NULL
) STRICT;
CREATE INDEX task_due ON task (tool, revision, due) WHERE due IS NOT NULL;
CREATE INDEX task_owner ON task (owner, created, id);
CREATE INDEX task_until ON task (until);

CREATE TABLE journal (
    task INTEGER NOT NULL,
    number INTEGER NOT NULL,
    answer INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

-- How many tasks of a quota have not ended.
CREATE TABLE quota (id BLOB PRIMARY KEY, open INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- A record that is null was removed, and must not come back.
CREATE TABLE session (
    key BLOB PRIMARY KEY,
    rev INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    until INTEGER NOT NULL,
    record TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX session_until ON session (until);

CREATE TABLE node (id BLOB PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Logs: those without a node are posted to, the others are streams.
CREATE TABLE head (
    row INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    session BLOB,
    node BLOB,
    fence INTEGER NOT NULL,
    last INTEGER NOT NULL,
    reader INTEGER NOT NULL,
    pending TEXT NOT NULL,
    state INTEGER NOT NULL,
    trimmed INTEGER NOT NULL,
    events INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    until INTEGER
) STRICT;
CREATE INDEX head_session ON head (session) WHERE session IS NOT NULL;
CREATE INDEX head_until ON head (until) WHERE until IS NOT NULL;

CREATE TABLE event (
    log INTEGER NOT NULL,
    number INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (log, number)
) STRICT, WITHOUT ROWID;

-- The number of the last event that was posted, to whatever log.
CREATE TABLE posted (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL) STRICT;
INSERT INTO posted VALUES (1, 0);

CREATE TABLE nonce (nonce BLOB PRIMARY KEY, by BLOB NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX nonce_until ON nonce (until);
CREATE INDEX nonce_by ON nonce (by);

-- Who has opened the file, and what they tell each other.
CREATE TABLE client (id BLOB PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE wake (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    client BLOB NOT NULL,
    at INTEGER NOT NULL,
    topic BLOB NOT NULL
) STRICT;
