-- A history of version 1: it must be read for ever. Never change this file.
PRAGMA application_id = 1835296328;
PRAGMA user_version = 1;
-- The history of checks, version 1. Times are UTC, as 2026-11-21T22:00:00Z.

-- A database with all its copies: they have one family guid. Without one (system databases, no boot page) each copy is alone.
CREATE TABLE database (
    id INTEGER PRIMARY KEY,
    family TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    first_seen TEXT NOT NULL
) STRICT;

-- A copy: data files at a place, or the backups that a server makes.
CREATE TABLE source (
    id INTEGER PRIMARY KEY,
    database INTEGER NOT NULL REFERENCES database ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('files', 'backup')),
    host TEXT NOT NULL,
    location TEXT NOT NULL,
    UNIQUE (database, kind, host, location)
) STRICT;

-- The state of a copy at one moment.
CREATE TABLE image (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    identity TEXT NOT NULL,
    checkpoint_lsn TEXT,
    taken_at TEXT NOT NULL,
    closed_at TEXT,
    UNIQUE (source, identity)
) STRICT;

-- A run of the check. Without a database if it could not be opened.
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    database INTEGER REFERENCES database ON DELETE CASCADE,
    image INTEGER REFERENCES image ON DELETE CASCADE,
    started TEXT NOT NULL,
    ended TEXT NOT NULL,
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    command TEXT NOT NULL,
    options TEXT NOT NULL,
    paths TEXT NOT NULL,
    exit_status INTEGER NOT NULL,
    complete INTEGER NOT NULL,
    error TEXT,
    findings INTEGER NOT NULL,
    findings_new INTEGER NOT NULL,
    findings_gone INTEGER NOT NULL,
    allocation_errors INTEGER NOT NULL,
    consistency_errors INTEGER NOT NULL,
    not_verified INTEGER NOT NULL,
    pages_in_use INTEGER NOT NULL,
    pages_read INTEGER NOT NULL,
    bytes_read INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    seconds REAL NOT NULL,
    cpu_seconds REAL,
    memory_peak INTEGER,
    spilled_bytes INTEGER NOT NULL
) STRICT;
CREATE INDEX run_of_database ON run (database, id);

-- When the pages of a range were read and judged last. Of a backup it is not later than the backup.
CREATE TABLE coverage (
    database INTEGER NOT NULL REFERENCES database ON DELETE CASCADE,
    file INTEGER NOT NULL,
    first INTEGER NOT NULL,
    depth TEXT NOT NULL CHECK (depth IN ('full', 'physical')),
    pages INTEGER NOT NULL,
    pages_in_use INTEGER NOT NULL,
    read_at TEXT,
    image INTEGER REFERENCES image ON DELETE CASCADE,
    evidence TEXT NOT NULL CHECK (evidence IN ('read', 'object', 'chain', 'vouched')),
    PRIMARY KEY (database, file, first, depth)
) STRICT, WITHOUT ROWID;

-- A partition of a heap or index.
CREATE TABLE object (
    id INTEGER PRIMARY KEY,
    database INTEGER NOT NULL REFERENCES database ON DELETE CASCADE,
    object_id INTEGER NOT NULL,
    index_id INTEGER NOT NULL,
    partition INTEGER NOT NULL,
    type TEXT NOT NULL,
    schema_name TEXT NOT NULL,
    object_name TEXT NOT NULL,
    index_name TEXT NOT NULL,
    UNIQUE (database, object_id, index_id, partition)
) STRICT;

-- What was counted in it, whenever that changed.
CREATE TABLE object_count (
    object INTEGER NOT NULL REFERENCES object ON DELETE CASCADE,
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    rows INTEGER NOT NULL,
    pages INTEGER NOT NULL,
    PRIMARY KEY (object, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX object_count_of_run ON object_count (run);

-- What ties places together: the links of an index or heap (unit), an index and its table (pair); when they were last compared whole,
-- in which image.
CREATE TABLE relation (
    object INTEGER NOT NULL REFERENCES object ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('unit', 'pair')),
    looked_at TEXT NOT NULL,
    closed_at TEXT,
    oldest_part_at TEXT,
    image INTEGER NOT NULL REFERENCES image ON DELETE CASCADE,
    verdict TEXT NOT NULL CHECK (verdict IN ('sound', 'findings', 'not verified')),
    PRIMARY KEY (object, kind)
) STRICT, WITHOUT ROWID;

-- A finding over all runs of one copy. Its id is its key.
CREATE TABLE finding (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    place TEXT NOT NULL,
    check_id TEXT NOT NULL,
    msg INTEGER NOT NULL,
    state INTEGER NOT NULL,
    class TEXT NOT NULL,
    object_id INTEGER,
    index_id INTEGER,
    object_name TEXT,
    file INTEGER,
    page INTEGER,
    slot INTEGER,
    text TEXT NOT NULL,
    life TEXT NOT NULL CHECK (life IN ('new', 'confirmed', 'gone')),
    first_seen TEXT NOT NULL,
    last_seen TEXT NOT NULL,
    last_looked TEXT NOT NULL,
    since TEXT NOT NULL,
    seen INTEGER NOT NULL,
    options TEXT NOT NULL,
    last_run INTEGER NOT NULL,
    last_image INTEGER NOT NULL REFERENCES image ON DELETE CASCADE,
    ack_by TEXT,
    ack_text TEXT,
    ack_at TEXT,
    ack_until TEXT,
    UNIQUE (source, place)
) STRICT;

CREATE INDEX finding_at ON finding (source, file, page);
CREATE INDEX finding_of_object ON finding (source, object_id);

-- When a finding came, came again or went.
CREATE TABLE finding_change (
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    finding INTEGER NOT NULL REFERENCES finding ON DELETE CASCADE,
    life TEXT NOT NULL CHECK (life IN ('new', 'gone')),
    PRIMARY KEY (run, finding)
) STRICT, WITHOUT ROWID;
CREATE INDEX finding_change_of_finding ON finding_change (finding);

CREATE TABLE not_verified (
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    limit_id TEXT NOT NULL,
    what TEXT NOT NULL,
    scope TEXT NOT NULL,
    reason TEXT NOT NULL,
    count INTEGER NOT NULL
) STRICT;
CREATE INDEX not_verified_of_run ON not_verified (run);

-- Results of mdfsck bench, by name.
CREATE TABLE baseline (
    name TEXT PRIMARY KEY,
    saved_at TEXT NOT NULL,
    results TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Who works on a database (its id) or on the whole history (0).
CREATE TABLE lease (
    scope INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    heartbeat TEXT NOT NULL
) STRICT;

-- The last run of each database, and the last that found it sound and was complete.
CREATE VIEW v_last AS
SELECT d.name AS database, d.family, r.id AS run, r.started, r.command, r.exit_status,
    CASE WHEN r.findings > 0 THEN 'corrupt' WHEN r.complete THEN 'sound' ELSE 'unknown' END AS verdict,
    r.findings, r.findings_new, r.findings_gone, r.not_verified, r.seconds, r.bytes_read, r.paths,
    (SELECT max(s.started) FROM run s WHERE s.database = d.id AND s.findings = 0 AND s.complete = 1 AND s.command = 'CHECKDB')
        AS last_sound
FROM database d JOIN run r ON r.id = (SELECT max(id) FROM run WHERE database = d.id);

-- Findings that were not looked at again since, or were seen again.
CREATE VIEW v_open_findings AS
SELECT d.name AS database, f.id AS key, f.life, f.msg, f.check_id, f.object_name AS object, f.file, f.page, f.slot, f.text,
    f.first_seen, f.last_seen, f.last_looked, f.seen, s.kind AS source_kind, s.host, s.location,
    f.ack_by, f.ack_text, f.ack_until
FROM finding f JOIN source s ON s.id = f.source JOIN database d ON d.id = s.database
WHERE f.life <> 'gone';

-- How old what was read and proven of each database is.
CREATE VIEW v_coverage AS
SELECT d.name AS database, d.family, r.pages_in_use, r.pages_never_read, r.oldest_read,
    count(e.object) AS relations, count(e.closed_at) AS relations_closed, min(e.closed_at) AS oldest_closed
FROM database d
JOIN (
    SELECT database, sum(pages_in_use) AS pages_in_use, sum(CASE WHEN read_at IS NULL THEN pages_in_use ELSE 0 END) AS pages_never_read,
        min(read_at) AS oldest_read
    FROM (
        SELECT database, file, first, min(pages_in_use) AS pages_in_use, max(read_at) AS read_at
        FROM coverage GROUP BY database, file, first
    ) GROUP BY database
) r ON r.database = d.id
LEFT JOIN object o ON o.database = d.id
LEFT JOIN relation e ON e.object = o.id
GROUP BY d.id;

INSERT INTO database VALUES (1, 'D65AF21E-6049-49FD-A872-DEF2A25A2242', 'Sales', '2026-11-20T22:00:00Z');
INSERT INTO source VALUES (1, 1, 'files', 'SQL01', '/data/sales.mdf');
INSERT INTO image VALUES (1, 1, '00000022:00000a78:00a0 2026-11-20 1000', '00000022:00000a78:00a0', '2026-11-20T22:00:00Z', NULL);
INSERT INTO image VALUES (2, 1, '00000023:00000a78:00a0 2026-11-21 1000', '00000023:00000a78:00a0', '2026-11-21T22:00:00Z', NULL);
INSERT INTO run VALUES (1, 1, 1, '2026-11-20T22:00:00Z', '2026-11-20T22:01:00Z', 'SQL01', '0.1.0', 'CHECKDB', '{"command":"CHECKDB"}',
    '/data/sales.mdf', 1, 1, NULL, 2, 2, 0, 0, 2, 0, 900, 900, 7372800, 20, 0.5, 0.4, 30000000, 0);
INSERT INTO run VALUES (2, 1, 2, '2026-11-21T22:00:00Z', '2026-11-21T22:01:00Z', 'SQL01', '0.1.0', 'CHECKDB', '{"command":"CHECKDB"}',
    '/data/sales.mdf', 17, 0, NULL, 2, 0, 1, 0, 1, 1, 900, 900, 7372800, 20, 0.5, NULL, NULL, 0);
INSERT INTO coverage VALUES (1, 1, 0, 'full', 500, 800, '2026-11-21T22:00:00Z', 2, 'read');
INSERT INTO coverage VALUES (1, 1, 131072, 'full', 500, 100, NULL, NULL, 'read');
INSERT INTO object VALUES (1, 1, 245575913, 1, 1, 'U', 'dbo', 'Orders', 'PK_Orders');
INSERT INTO object_count VALUES (1, 1, 10, 2);
INSERT INTO object_count VALUES (1, 2, 20, 3);
INSERT INTO relation VALUES (1, 'unit', '2026-11-21T22:00:00Z', '2026-11-20T22:00:00Z', '2026-11-20T22:00:00Z', 2, 'findings');
INSERT INTO relation VALUES (1, 'pair', '2026-11-21T22:00:00Z', NULL, NULL, 2, 'not verified');
INSERT INTO finding VALUES (1, 1, 'tree.child-unseen 245575913.1.1.1 (1:9) (1:8)', 'tree.child-unseen', 8976, 1, 'consistency', 245575913, 1,
    'dbo.Orders', 1, 9, NULL, 'Table error: ...', 'confirmed', '2026-11-20T22:01:00Z', '2026-11-21T22:01:00Z', '2026-11-21T22:01:00Z',
    '2026-11-20T22:01:00Z', 2, '{"command":"CHECKDB"}', 2, 2, 'dba', 'is repaired on Sunday', '2026-11-21T23:00:00Z', NULL);
INSERT INTO finding VALUES (2, 1, 'page.header 245575913.1.1.1 (1:10) -', 'page.header', 8939, 98, 'consistency', 245575913, 1,
    'dbo.Orders', 1, 10, NULL, 'Table error: ...', 'gone', '2026-11-20T22:01:00Z', '2026-11-20T22:01:00Z', '2026-11-21T22:01:00Z',
    '2026-11-21T22:01:00Z', 1, '{"command":"CHECKDB"}', 1, 1, NULL, NULL, NULL, NULL);
INSERT INTO finding_change VALUES (1, 1, 'new');
INSERT INTO finding_change VALUES (1, 2, 'new');
INSERT INTO finding_change VALUES (2, 2, 'gone');
INSERT INTO not_verified VALUES (2, 'columns.unknown', 'columns', 'dbo.Orders', 'why', 3);
INSERT INTO baseline VALUES ('before', '2026-11-20T22:00:00Z', '{}');
INSERT INTO lease VALUES (0, 'SQL01', 1, '2026-11-20T22:00:00Z', '2026-11-20T22:00:00Z');
