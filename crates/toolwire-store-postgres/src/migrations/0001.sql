-- Times are milliseconds since 1970 by the clock of this server. Values of tasks are JSON texts that nobody here reads.

CREATE TABLE task (
    id bytea PRIMARY KEY,
    owner bytea NOT NULL,
    quota bytea NOT NULL,
    tool text NOT NULL,
    revision bigint NOT NULL,
    format bigint NOT NULL,
    key bytea,
    created_ms bigint NOT NULL,
    -- From when on it can be claimed; never while it waits for an answer, and when it has ended.
    due_ms bigint,
    until_ms bigint NOT NULL,
    ended boolean NOT NULL,
    -- Its life, lease, questions and note: all that changes with most writes.
    state text NOT NULL,
    request text NOT NULL,
    outcome text
);
CREATE INDEX task_due ON task (due_ms, id) WHERE due_ms IS NOT NULL;
CREATE INDEX task_owner ON task (owner, created_ms, id);
CREATE INDEX task_quota ON task (quota) WHERE NOT ended;
CREATE INDEX task_until ON task (until_ms);

CREATE TABLE journal (
    task bytea NOT NULL REFERENCES task ON DELETE CASCADE,
    place bigint NOT NULL,
    answer boolean NOT NULL,
    entry text NOT NULL,
    PRIMARY KEY (task, place)
);

CREATE TABLE session (
    key bytea PRIMARY KEY,
    rev bigint NOT NULL,
    seen bigint NOT NULL,
    gone boolean NOT NULL,
    until_ms bigint NOT NULL,
    record text NOT NULL
);
CREATE INDEX session_until ON session (until_ms);

CREATE TABLE node (id bytea PRIMARY KEY, until_ms bigint NOT NULL);

CREATE TABLE log (
    key bytea PRIMARY KEY,
    session bytea,
    -- These three only for a stream.
    node bytea,
    fence bigint,
    pending text,
    state text NOT NULL,
    last bigint NOT NULL,
    reader bigint NOT NULL,
    -- No event with this number or a higher one has been let go of.
    first bigint NOT NULL,
    bytes bigint NOT NULL,
    count bigint NOT NULL,
    until_ms bigint NOT NULL
);
CREATE INDEX log_session ON log (session) WHERE session IS NOT NULL;
CREATE INDEX log_until ON log (until_ms);

CREATE TABLE event (
    log bytea NOT NULL REFERENCES log ON DELETE CASCADE,
    number bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (log, number)
);
-- For all logs, so that numbers are never used again when a log begins anew.
CREATE SEQUENCE posted;

CREATE TABLE nonce (nonce bytea PRIMARY KEY, caller bytea NOT NULL, until_ms bigint NOT NULL);
CREATE INDEX nonce_caller ON nonce (caller);
CREATE INDEX nonce_until ON nonce (until_ms);
