-- Generated from 0001_initial.sql.tmpl; do not edit.

-- The first schema. Times are nanoseconds since 1970 in UTC; documents are JSON.
-- json_valid(NULL) is 0 to the SQLite of many a shell, and its integrity_check would
-- complain: where a document may be missing, the CHECK says so.
-- What the domain enumerates is filled in from its tables by the package's
-- generator: edit the .tmpl, then run go generate.

PRAGMA application_id = 1702391651;

-- Kinds grow from version to version, so they are rows; states are CHECKs.
CREATE TABLE run_kind (name TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO run_kind (name) VALUES ('provision'), ('handoff');

CREATE TABLE step_kind (name TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO step_kind (name) VALUES ('tofu-apply'), ('ssh-wait'), ('host-onboard'), ('ansible-play');

CREATE TABLE job_kind (name TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO job_kind (name) VALUES ('step'), ('workspace-apply'), ('host-onboard'), ('leave-play'), ('playbook-run');

-- The state machines. Triggers below refuse every other change.
CREATE TABLE step_transition (
    from_state TEXT NOT NULL,
    to_state   TEXT NOT NULL,
    PRIMARY KEY (from_state, to_state)
) STRICT, WITHOUT ROWID;
INSERT INTO step_transition (from_state, to_state) VALUES
    ('blocked', 'ready'),
    ('blocked', 'succeeded'),
    ('blocked', 'cancelled'),
    ('ready', 'running'),
    ('ready', 'cancelled'),
    ('running', 'awaiting-approval'),
    ('running', 'succeeded'),
    ('running', 'failed'),
    ('running', 'cancelled'),
    ('running', 'ready'),
    ('awaiting-approval', 'ready'),
    ('awaiting-approval', 'cancelled'),
    ('failed', 'ready');

CREATE TABLE job_transition (
    from_state TEXT NOT NULL,
    to_state   TEXT NOT NULL,
    PRIMARY KEY (from_state, to_state)
) STRICT, WITHOUT ROWID;
INSERT INTO job_transition (from_state, to_state) VALUES
    ('queued', 'running'),
    ('queued', 'cancelled'),
    ('running', 'succeeded'),
    ('running', 'failed'),
    ('running', 'cancelled'),
    ('running', 'interrupted');

-- One row: the daemon that has the ledger, or had it last.
CREATE TABLE daemon (
    id         INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    version    TEXT    NOT NULL, -- empty before the first start
    pid        INTEGER NOT NULL,
    started_at INTEGER,          -- NULL before the first start
    stopped_at INTEGER,          -- NULL while it runs, and for ever after a crash
    draining   INTEGER NOT NULL CHECK (draining IN (0, 1))
) STRICT;
INSERT INTO daemon (id, version, pid, draining) VALUES (1, '', 0, 0);

CREATE TABLE workspace (
    name           TEXT    NOT NULL PRIMARY KEY,
    dir            TEXT    NOT NULL,
    tofu_workspace TEXT    NOT NULL,
    var_files      TEXT    NOT NULL CHECK (json_valid(var_files)),
    backend_config TEXT    NOT NULL CHECK (json_valid(backend_config)),
    cli_config     TEXT    NOT NULL,
    approval       TEXT    NOT NULL CHECK (approval IN ('never', 'destructive', 'always')),
    watch          INTEGER NOT NULL CHECK (watch IN (0, 1)),
    watched        TEXT    NOT NULL, -- digest of the configuration that was applied last for a change of it; empty before the first look
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT;

-- Runs, jobs and events name a workspace without a foreign key: history stays
-- when the workspace is removed.
CREATE TABLE run (
    id           TEXT    NOT NULL PRIMARY KEY,
    key          TEXT    UNIQUE, -- idempotency key, where the client gave one
    kind         TEXT    NOT NULL REFERENCES run_kind (name),
    workspace    TEXT    NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('queued', 'running', 'awaiting-approval', 'succeeded', 'failed', 'cancelled')), -- follows from the steps; kept for the indices
    spec         TEXT    NOT NULL CHECK (json_valid(spec)),
    inventory    TEXT,           -- digest that step 1 recorded
    resource     INTEGER NOT NULL CHECK (resource IN (0, 1)), -- an exocomp_provision asked for it
    submitted_by TEXT    NOT NULL CHECK (json_valid(submitted_by)),
    created_at   INTEGER NOT NULL,
    finished_at  INTEGER,
    CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'cancelled')))
) STRICT;
CREATE INDEX run_by_workspace ON run (workspace, id);
CREATE INDEX run_by_state ON run (state, id);
CREATE INDEX run_parked ON run (workspace) WHERE state = 'awaiting-approval';

CREATE TABLE step (
    run_id         TEXT    NOT NULL REFERENCES run (id),
    seq            INTEGER NOT NULL CHECK (seq >= 1),
    kind           TEXT    NOT NULL REFERENCES step_kind (name),
    state          TEXT    NOT NULL CHECK (state IN ('blocked', 'awaiting-approval', 'ready', 'running', 'succeeded', 'failed', 'cancelled')),
    origin         TEXT    NOT NULL CHECK (origin IN ('run', 'caller')),
    taken_from     TEXT    REFERENCES run (id), -- the run that did it, where this one took its result over
    only_hosts     TEXT    CHECK (only_hosts IS NULL OR json_valid(only_hosts)), -- that it deals with since a resume of the failed ones; NULL: all
    attempts       INTEGER NOT NULL CHECK (attempts >= 0),
    crash_attempts INTEGER NOT NULL CHECK (crash_attempts BETWEEN 0 AND 10),
    begun_crashes  INTEGER NOT NULL DEFAULT 0 CHECK (begun_crashes BETWEEN 0 AND 3), -- of those, while a tool was begun
    job_id         TEXT    REFERENCES job (id), -- the newest attempt's
    failure        TEXT    CHECK (failure IS NULL OR json_valid(failure)),
    report         TEXT    CHECK (report IS NULL OR json_valid(report)),
    started_at     INTEGER, -- of the newest attempt
    finished_at    INTEGER,
    PRIMARY KEY (run_id, seq),
    CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'cancelled'))),
    CHECK ((failure IS NOT NULL) = (state IN ('failed', 'cancelled'))),
    CHECK (state <> 'running' OR (started_at IS NOT NULL AND job_id IS NOT NULL))
) STRICT;

CREATE TRIGGER step_begins_blocked BEFORE INSERT ON step
WHEN NEW.state <> 'blocked'
BEGIN
    SELECT RAISE(ABORT, 'a step begins blocked');
END;

CREATE TRIGGER step_follows_the_state_machine BEFORE UPDATE OF state ON step
WHEN NEW.state <> OLD.state AND NOT EXISTS (
    SELECT 1 FROM step_transition
    WHERE from_state = OLD.state AND to_state = NEW.state
)
BEGIN
    SELECT RAISE(ABORT, 'the state machine has no such step transition');
END;

CREATE TRIGGER step_keeps_its_origin BEFORE UPDATE OF origin, taken_from ON step
BEGIN
    SELECT RAISE(ABORT, 'who does the work of a step is settled with its run');
END;

-- A step succeeds without running where it is the first and a caller did it, or
-- where the same step of an older run of the workspace succeeded.
CREATE TRIGGER step_succeeds_by_somebody BEFORE UPDATE OF state ON step
WHEN NEW.state = 'succeeded' AND OLD.state = 'blocked'
    AND NOT (OLD.seq = 1 AND OLD.origin = 'caller' AND OLD.taken_from IS NULL)
    AND NOT EXISTS (
        SELECT 1 FROM step AS theirs
        JOIN run AS source ON source.id = theirs.run_id
        JOIN run AS own ON own.id = OLD.run_id
        WHERE theirs.run_id = OLD.taken_from AND theirs.seq = OLD.seq AND theirs.kind = OLD.kind
            AND theirs.state = 'succeeded' AND source.workspace = own.workspace AND source.id < own.id
    )
BEGIN
    SELECT RAISE(ABORT, 'only what a caller or an older run did succeeds without running');
END;

CREATE TRIGGER step_follows_its_predecessor BEFORE UPDATE OF state ON step
WHEN NEW.state IN ('ready', 'running', 'succeeded') AND OLD.seq > 1 AND NOT EXISTS (
    SELECT 1 FROM step AS previous
    WHERE previous.run_id = OLD.run_id AND previous.seq = OLD.seq - 1 AND previous.state = 'succeeded'
)
BEGIN
    SELECT RAISE(ABORT, 'the step before it has not succeeded');
END;

-- What a resource handed over for a run whose turn has not come: step 1 records
-- it then.
CREATE TABLE handed (
    run_id  TEXT    NOT NULL PRIMARY KEY REFERENCES run (id),
    content BLOB    NOT NULL,
    digest  TEXT    NOT NULL,
    path    TEXT    NOT NULL,
    hosts   TEXT    NOT NULL CHECK (json_valid(hosts)),
    places  TEXT    NOT NULL CHECK (json_valid(places))
) STRICT;

-- The exocomp_provision that has a workspace.
CREATE TABLE provision (
    workspace   TEXT    NOT NULL PRIMARY KEY REFERENCES workspace (name) ON DELETE CASCADE,
    owner       TEXT    NOT NULL, -- sha256 of the resource's token
    handed_over INTEGER NOT NULL CHECK (handed_over IN (0, 1)),
    succeeded   INTEGER NOT NULL CHECK (succeeded IN (0, 1)),
    answered    INTEGER NOT NULL CHECK (answered IN (0, 1)), -- a client was told of a success
    released    INTEGER NOT NULL CHECK (released IN (0, 1)),
    places      TEXT    NOT NULL, -- digest of where its hosts are; empty where the daemon applies
    run_id      TEXT    REFERENCES run (id), -- the newest one that it asked for or took over
    abandon_at  INTEGER, -- when a live run is cancelled unless a create claims it
    leave_job   TEXT    REFERENCES job (id),
    updated_at  INTEGER NOT NULL
) STRICT;

-- A workspace's queue. The oldest open turn holds the workspace.
CREATE TABLE turn (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT    NOT NULL,
    run_id    TEXT    REFERENCES run (id),
    job_id    TEXT,    -- its job refers back; a deferred reference here would make SQLite walk the tables that refer to jobs
    opened_at INTEGER NOT NULL,
    closed_at INTEGER, -- NULL while it is open
    CHECK ((run_id IS NULL) <> (job_id IS NULL))
) STRICT;
CREATE INDEX turn_open ON turn (workspace, seq) WHERE closed_at IS NULL;
CREATE UNIQUE INDEX turn_of_run ON turn (run_id) WHERE run_id IS NOT NULL AND closed_at IS NULL;
CREATE UNIQUE INDEX turn_of_job ON turn (job_id) WHERE job_id IS NOT NULL;

CREATE TABLE job (
    id               TEXT    NOT NULL PRIMARY KEY,
    key              TEXT    UNIQUE, -- idempotency key, where the client gave one
    kind             TEXT    NOT NULL REFERENCES job_kind (name),
    state            TEXT    NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'interrupted')),
    workspace        TEXT    NOT NULL,
    turn             INTEGER NOT NULL REFERENCES turn (seq),
    run_id           TEXT,
    step             INTEGER,
    spec             TEXT    NOT NULL CHECK (json_valid(spec)),
    attempt          INTEGER NOT NULL CHECK (attempt >= 1),
    attempt_id       TEXT    UNIQUE, -- NULL before it starts
    token            TEXT,           -- the live attempt's; erased at its end
    phase            TEXT    NOT NULL,
    cancel_requested INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
    cancel_force     INTEGER NOT NULL CHECK (cancel_force IN (0, 1)),
    failure          TEXT    CHECK (failure IS NULL OR json_valid(failure)),
    report           TEXT    CHECK (report IS NULL OR json_valid(report)),
    redrives         TEXT    UNIQUE REFERENCES job (id), -- the interrupted job that it runs again
    redriven_by      TEXT    UNIQUE REFERENCES job (id),
    submitted_by     TEXT    NOT NULL CHECK (json_valid(submitted_by)),
    created_at       INTEGER NOT NULL,
    started_at       INTEGER,
    finished_at      INTEGER,
    FOREIGN KEY (run_id, step) REFERENCES step (run_id, seq),
    CHECK ((run_id IS NULL) = (step IS NULL)),
    CHECK ((run_id IS NOT NULL) = (kind = 'step')),
    CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'cancelled', 'interrupted'))),
    CHECK ((failure IS NOT NULL) = (state IN ('failed', 'cancelled', 'interrupted'))),
    CHECK ((token IS NOT NULL) = (state = 'running')),
    CHECK ((started_at IS NOT NULL) = (attempt_id IS NOT NULL)),
    CHECK (started_at IS NOT NULL OR state IN ('queued', 'cancelled'))
) STRICT;
CREATE INDEX job_by_workspace ON job (workspace, id);
CREATE INDEX job_by_run ON job (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX job_by_state ON job (state, id);
-- At most one attempt of a step, and of a turn, is live.
CREATE UNIQUE INDEX job_live ON job (turn) WHERE finished_at IS NULL;

-- (No trigger on INSERT: it would make SQLite look for referring rows in tables
-- without an index on them. Jobs are inserted in one place, as queued.)
CREATE TRIGGER job_follows_the_state_machine BEFORE UPDATE OF state ON job
WHEN NEW.state <> OLD.state AND NOT EXISTS (
    SELECT 1 FROM job_transition
    WHERE from_state = OLD.state AND to_state = NEW.state
)
BEGIN
    SELECT RAISE(ABORT, 'the state machine has no such job transition');
END;

CREATE TABLE inventory (
    workspace  TEXT    NOT NULL PRIMARY KEY REFERENCES workspace (name) ON DELETE CASCADE,
    digest     TEXT    NOT NULL,
    content    BLOB    NOT NULL,
    path       TEXT    NOT NULL, -- of the published copy
    hosts      TEXT    NOT NULL CHECK (json_valid(hosts)),
    captured   INTEGER NOT NULL, -- outputs that it was derived from
    job_id     TEXT    REFERENCES job (id), -- NULL where a resource handed it over
    updated_at INTEGER NOT NULL  -- of the newest capture, changed or not
) STRICT;

-- Live pins are matched; retired ones are kept for people to look at.
CREATE TABLE pin (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    host        TEXT    NOT NULL,
    port        INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535),
    key_type    TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    sha256      TEXT    NOT NULL,
    source      TEXT    NOT NULL CHECK (source IN ('first-use', 'stated', 'rotated')),
    instance_id TEXT    NOT NULL,
    added_at    INTEGER NOT NULL,
    retired_at  INTEGER,
    retired     TEXT, -- why
    CHECK ((retired_at IS NULL) = (retired IS NULL))
) STRICT;
CREATE UNIQUE INDEX pin_live ON pin (host, port, key_type) WHERE retired_at IS NULL;
CREATE INDEX pin_retired ON pin (retired_at) WHERE retired_at IS NOT NULL;

CREATE TABLE pin_user (
    pin       INTEGER NOT NULL REFERENCES pin (id) ON DELETE CASCADE,
    workspace TEXT    NOT NULL,
    host      TEXT    NOT NULL,
    PRIMARY KEY (pin, workspace, host)
) STRICT, WITHOUT ROWID;
CREATE INDEX pin_user_by_workspace ON pin_user (workspace, host);

CREATE TABLE admission (
    workspace TEXT    NOT NULL REFERENCES workspace (name) ON DELETE CASCADE,
    host      TEXT    NOT NULL,
    login     TEXT    NOT NULL CHECK (login IN ('automation', 'inventory')),
    address   TEXT    NOT NULL,
    job_id    TEXT    NOT NULL REFERENCES job (id),
    at        INTEGER NOT NULL,
    PRIMARY KEY (workspace, host)
) STRICT, WITHOUT ROWID;

-- Resources that an interrupted apply may have made without saving them.
CREATE TABLE lost_create (
    workspace   TEXT    NOT NULL REFERENCES workspace (name) ON DELETE CASCADE,
    address     TEXT    NOT NULL,
    provider_id TEXT    NOT NULL, -- empty where the journal names none
    prior_id    TEXT    NOT NULL, -- of the object that it was to replace, or empty
    job_id      TEXT    NOT NULL REFERENCES job (id),
    since       INTEGER NOT NULL,
    PRIMARY KEY (workspace, address)
) STRICT, WITHOUT ROWID;

-- Recurring work. It names a workspace without a foreign key, and fails closed
-- while there is none.
CREATE TABLE schedule (
    name            TEXT    NOT NULL PRIMARY KEY,
    kind            TEXT    NOT NULL CHECK (kind IN ('play', 'apply')),
    workspace       TEXT    NOT NULL,
    cron            TEXT    NOT NULL,
    timezone        TEXT    NOT NULL, -- empty: the machine's
    concurrency_key TEXT    NOT NULL, -- besides the inventory's name; empty: none
    playbook        TEXT    NOT NULL, -- path; empty for an apply
    args            TEXT    NOT NULL CHECK (json_valid(args)),
    egress          TEXT    NOT NULL CHECK (json_valid(egress)),
    ssh_identities  TEXT    NOT NULL CHECK (json_valid(ssh_identities)),
    no_admit        INTEGER NOT NULL CHECK (no_admit IN (0, 1)),
    keep_going      INTEGER NOT NULL CHECK (keep_going IN (0, 1)),
    paused          INTEGER NOT NULL CHECK (paused IN (0, 1)),
    handled_at      INTEGER NOT NULL, -- instants up to this one are on record
    created_by      TEXT    NOT NULL CHECK (json_valid(created_by)),
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    CHECK ((playbook <> '') = (kind = 'play'))
) STRICT, WITHOUT ROWID;

-- What became of each instant. A fire outlives its schedule: its job goes on, and
-- keeps other fires of its keys waiting.
CREATE TABLE fire (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    key             TEXT    UNIQUE, -- idempotency key of a manual one
    schedule        TEXT    NOT NULL,
    at              INTEGER NOT NULL, -- the instant
    workspace       TEXT    NOT NULL,
    target          TEXT    NOT NULL, -- the inventory's name: a key of its own
    concurrency_key TEXT    NOT NULL,
    manual          INTEGER NOT NULL CHECK (manual IN (0, 1)),
    state           TEXT    NOT NULL CHECK (state IN ('waiting', 'started', 'skipped', 'coalesced', 'missed', 'refused')),
    reason          TEXT    NOT NULL,
    job_id          TEXT    REFERENCES job (id), -- the newest, where it was redriven
    peer            TEXT    NOT NULL CHECK (json_valid(peer)),
    recorded_at     INTEGER NOT NULL,
    decided_at      INTEGER,
    CHECK ((decided_at IS NULL) = (state = 'waiting')),
    CHECK ((job_id IS NOT NULL) = (state = 'started')),
    CHECK (reason <> '' OR state IN ('waiting', 'started'))
) STRICT;
CREATE UNIQUE INDEX fire_instant ON fire (schedule, at);
CREATE INDEX fire_by_schedule ON fire (schedule, id);
CREATE INDEX fire_decided ON fire (decided_at) WHERE decided_at IS NOT NULL;
CREATE INDEX fire_by_job ON fire (job_id) WHERE job_id IS NOT NULL;
CREATE UNIQUE INDEX fire_waiting ON fire (schedule) WHERE state = 'waiting';

CREATE TRIGGER fire_is_decided_once BEFORE UPDATE OF state ON fire
WHEN NEW.state <> OLD.state AND OLD.state <> 'waiting'
BEGIN
    SELECT RAISE(ABORT, 'what became of a fire stands');
END;

-- Ciphertexts; the ledger never sees what is in them.
CREATE TABLE sealed (
    kind       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    ciphertext BLOB    NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;

CREATE TABLE event (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    kind      TEXT    NOT NULL,
    security  INTEGER NOT NULL CHECK (security IN (0, 1)),
    workspace TEXT,
    run_id    TEXT,
    step      TEXT,
    job_id    TEXT,
    host      TEXT,
    state     TEXT,
    warning   INTEGER NOT NULL CHECK (warning IN (0, 1)),
    message   TEXT    NOT NULL,
    peer      TEXT    NOT NULL CHECK (json_valid(peer))
) STRICT;
CREATE INDEX event_by_workspace ON event (workspace, id) WHERE workspace IS NOT NULL;
CREATE INDEX event_by_run ON event (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX event_by_job ON event (job_id, id) WHERE job_id IS NOT NULL;
CREATE INDEX event_security ON event (id) WHERE security = 1;

CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE INDEX event_progress ON event (at) WHERE kind = 'job.progress';

-- Progress alone, which only a live watcher needs, goes with the logs. Its age is
-- counted from the newest event: no clock of the machine can make it old.
CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event
WHEN OLD.kind <> 'job.progress' OR OLD.at >= (
    SELECT at FROM event ORDER BY id DESC LIMIT 1
) - 2592000000000000
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;
