-- Version 3: backups that are watched for, events, and checks that are under way.

-- A file that the watcher saw, since when it has been so (milliseconds since 1970), and what its labels say.
CREATE TABLE watched_file (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    version TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    since INTEGER NOT NULL,
    labels TEXT
) STRICT, WITHOUT ROWID;

-- A backup, wherever its files lie; the data files of a database in one state; or a file of which it is not known yet what it is.
CREATE TABLE backup (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    family TEXT NOT NULL,
    server TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('full', 'differential', 'log', 'files', 'other', 'data', 'unknown')),
    taken_at TEXT,
    paths TEXT NOT NULL,
    set_guid TEXT,
    position INTEGER NOT NULL,
    size INTEGER NOT NULL,
    has_checksums INTEGER NOT NULL,
    is_damaged INTEGER NOT NULL,
    base TEXT NOT NULL,
    versions TEXT NOT NULL,
    first_seen TEXT NOT NULL,
    gone_at TEXT,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'ready', 'running', 'done', 'skipped')),
    reason TEXT NOT NULL,
    reported_at TEXT,
    tries INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    not_before TEXT,
    holder TEXT,
    host TEXT,
    pid INTEGER,
    heartbeat TEXT,
    started TEXT,
    ended TEXT,
    verdict TEXT CHECK (verdict IN ('sound', 'corrupt', 'unknown')),
    findings INTEGER NOT NULL DEFAULT 0,
    not_verified INTEGER NOT NULL DEFAULT 0,
    run INTEGER REFERENCES run ON DELETE SET NULL
) STRICT;
CREATE INDEX backup_by_state ON backup (state);
CREATE INDEX backup_of_family ON backup (family);
CREATE INDEX backup_of_run ON backup (run);

-- Events that are to be passed on: the lines that one call of the program gets.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    created TEXT NOT NULL,
    event TEXT NOT NULL,
    database TEXT NOT NULL,
    count INTEGER NOT NULL,
    lines TEXT NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    not_before TEXT,
    holder TEXT,
    done_at TEXT,
    error TEXT
) STRICT;
CREATE INDEX outbox_left ON outbox (done_at, not_before);

-- What is not as it was promised, so that it is said once: a family without a new backup, or with pages that were not read in time.
-- Different promises (who judges, and how many seconds are allowed) do not answer for each other. `judged` is when that was last seen.
CREATE TABLE alarm (
    family TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('backup-missing', 'promise-broken')),
    promise TEXT NOT NULL,
    since TEXT NOT NULL,
    judged TEXT NOT NULL,
    PRIMARY KEY (family, kind, promise)
) STRICT, WITHOUT ROWID;

-- Checks that are under way, and those that were killed: what they have done so far. No number is used twice.
CREATE TABLE progress (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    family TEXT NOT NULL,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    paths TEXT NOT NULL,
    started TEXT NOT NULL,
    heartbeat TEXT NOT NULL,
    done INTEGER NOT NULL,
    pages INTEGER NOT NULL,
    granted INTEGER,
    phases TEXT NOT NULL,
    series TEXT NOT NULL,
    map TEXT NOT NULL
) STRICT;
