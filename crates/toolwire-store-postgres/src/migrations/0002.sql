-- Version 2 has what leases are compared with, revisions and sessions in columns: they are read without the request, and
-- without reading JSON here, which fails at a NUL inside a string.
--
-- `state` gets another name, so that a node of version 1 that is still open fails, instead of writing it without the
-- new columns.

-- The oldest version whose nodes can work on the tables as they are from this version on.
ALTER TABLE meta ADD COLUMN least_reader bigint NOT NULL DEFAULT 1;

ALTER TABLE task RENAME COLUMN state TO details;
ALTER TABLE task
    -- A task that has ended has none.
    ALTER COLUMN request DROP NOT NULL,
    ADD COLUMN session text,
    ADD COLUMN phase text,
    ADD COLUMN fence bigint,
    ADD COLUMN token text,
    ADD COLUMN attempt bigint,
    ADD COLUMN lease_ms bigint,
    ADD COLUMN lease_until_ms bigint,
    -- The number of entries of the journal when the lease began.
    ADD COLUMN claimed_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN rev bigint;

-- Patterns, because the values of tasks may be anything. What comes before the questions, and what comes after the
-- note, was written by Toolwire alone.
WITH found AS (
    SELECT id,
        regexp_match(details, '^\{"phase":"([a-z]+)","keep_ms":\d+,"ttl_ms":\d+,"floor_ms":\d+,"works":[a-z]+,"until_ms":\d+,"fence":(\d+),"attempt":(\d+),"entries":\d+,"node":(?:null|"[^"]*"),"token":(?:null|"([^"]*)"),"lease_ms":(\d+),"lease_until_ms":(\d+),') AS was,
        substring(details FROM '"rev":(\d+)\}$') AS rev,
        substring(right(request, 8192) FROM '"session":"([A-Za-z0-9_-]+)"(?:,"progress":(?:[-+.0-9eE]+|"(?:[^"\\]|\\.)*"))?,"call":"(?:[^"\\]|\\.)*","live":(?:true|false),"wrap":(?:true|false)\}$') AS session
    FROM task)
UPDATE task SET
    session = found.session,
    -- An unknown phase, of a row that could not be read before.
    phase = coalesce(found.was[1], 'unknown'),
    fence = least(coalesce(found.was[2], '0')::numeric, 9223372036854775807)::bigint,
    token = found.was[4],
    attempt = least(coalesce(found.was[3], '0')::numeric, 9223372036854775807)::bigint,
    lease_ms = least(coalesce(found.was[5], '0')::numeric, 9223372036854775807)::bigint,
    lease_until_ms = least(coalesce(found.was[6], '0')::numeric, 9223372036854775807)::bigint,
    rev = least(coalesce(found.rev, '1')::numeric, 9223372036854775807)::bigint,
    request = CASE WHEN ended THEN NULL ELSE request END
FROM found WHERE task.id = found.id;

ALTER TABLE task
    ALTER COLUMN phase SET NOT NULL,
    ALTER COLUMN fence SET NOT NULL,
    ALTER COLUMN attempt SET NOT NULL,
    ALTER COLUMN lease_ms SET NOT NULL,
    ALTER COLUMN lease_until_ms SET NOT NULL,
    ALTER COLUMN rev SET NOT NULL;

DELETE FROM journal USING task WHERE journal.task = task.id AND task.ended;

-- Claims look at what their node serves, and do not walk over the rest.
DROP INDEX task_due;
CREATE INDEX task_served ON task (tool, revision, due_ms, id) WHERE due_ms IS NOT NULL;
