-- alarm
CREATE TABLE alarm (
    identity TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('backup-missing', 'promise-broken')),
    promise TEXT NOT NULL,
    since TEXT NOT NULL,
    judged TEXT NOT NULL,
    PRIMARY KEY (identity, kind, promise)
) STRICT, WITHOUT ROWID;
-- backup
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
, fingerprints TEXT NOT NULL DEFAULT '[]') STRICT;
-- backup_by_state
CREATE INDEX backup_by_state ON backup (state);
-- backup_of_family
CREATE INDEX backup_of_family ON backup (family);
-- backup_of_run
CREATE INDEX backup_of_run ON backup (run);
-- baseline
CREATE TABLE baseline (
    name TEXT PRIMARY KEY,
    saved_at TEXT NOT NULL,
    results TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- coverage
CREATE TABLE coverage (
    database INTEGER NOT NULL REFERENCES database ON DELETE CASCADE,
    file INTEGER NOT NULL,
    first INTEGER NOT NULL,
    depth TEXT NOT NULL CHECK (depth IN ('full', 'physical')),
    pages INTEGER NOT NULL,
    pages_in_use INTEGER NOT NULL,
    read_at TEXT,
    image INTEGER REFERENCES image ON DELETE CASCADE,
    evidence TEXT NOT NULL CHECK (evidence IN ('read', 'object', 'chain', 'vouched')), known_since TEXT,
    PRIMARY KEY (database, file, first, depth)
) STRICT, WITHOUT ROWID;
-- database
CREATE TABLE database (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    first_seen TEXT NOT NULL
, family TEXT NOT NULL DEFAULT '', server TEXT NOT NULL DEFAULT '') STRICT;
-- finding
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
-- finding_at
CREATE INDEX finding_at ON finding (source, file, page);
-- finding_change
CREATE TABLE finding_change (
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    finding INTEGER NOT NULL REFERENCES finding ON DELETE CASCADE,
    life TEXT NOT NULL CHECK (life IN ('new', 'gone')),
    PRIMARY KEY (run, finding)
) STRICT, WITHOUT ROWID;
-- finding_change_of_finding
CREATE INDEX finding_change_of_finding ON finding_change (finding);
-- finding_file
CREATE TABLE finding_file (
    finding INTEGER NOT NULL REFERENCES finding ON DELETE CASCADE,
    image INTEGER NOT NULL REFERENCES image ON DELETE CASCADE,
    host TEXT NOT NULL,
    paths TEXT NOT NULL,
    PRIMARY KEY (finding, image, host, paths)
) STRICT, WITHOUT ROWID;
-- finding_of_object
CREATE INDEX finding_of_object ON finding (source, object_id);
-- image
CREATE TABLE image (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    identity TEXT NOT NULL,
    checkpoint_lsn TEXT,
    taken_at TEXT NOT NULL,
    closed_at TEXT,
    UNIQUE (source, identity)
) STRICT;
-- lease
CREATE TABLE lease (
    scope INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    heartbeat TEXT NOT NULL
) STRICT;
-- not_verified
CREATE TABLE not_verified (
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    limit_id TEXT NOT NULL,
    what TEXT NOT NULL,
    scope TEXT NOT NULL,
    reason TEXT NOT NULL,
    count INTEGER NOT NULL
) STRICT;
-- not_verified_of_run
CREATE INDEX not_verified_of_run ON not_verified (run);
-- object
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
-- object_count
CREATE TABLE object_count (
    object INTEGER NOT NULL REFERENCES object ON DELETE CASCADE,
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    rows INTEGER NOT NULL,
    pages INTEGER NOT NULL,
    PRIMARY KEY (object, run)
) STRICT, WITHOUT ROWID;
-- object_count_of_run
CREATE INDEX object_count_of_run ON object_count (run);
-- outbox
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
-- outbox_left
CREATE INDEX outbox_left ON outbox (done_at, not_before);
-- part
CREATE TABLE part (
    plan TEXT NOT NULL,
    task INTEGER NOT NULL,
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    is_read INTEGER NOT NULL,
    held TEXT,
    PRIMARY KEY (plan, task)
) STRICT, WITHOUT ROWID;
-- part_of_window
CREATE INDEX part_of_window ON part (window);
-- progress
CREATE TABLE progress (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    identity TEXT NOT NULL,
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
-- relation
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
-- run
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
-- run_of_database
CREATE INDEX run_of_database ON run (database, id);
-- source
CREATE TABLE source (
    id INTEGER PRIMARY KEY,
    database INTEGER NOT NULL REFERENCES database ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('files', 'backup')),
    host TEXT NOT NULL,
    location TEXT NOT NULL,
    UNIQUE (database, kind, host, location)
) STRICT;
-- v_coverage
CREATE VIEW v_coverage AS
SELECT d.name AS database, d.family, d.server, d.identity, r.pages_in_use, r.pages_never_read, r.oldest_read,
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
-- v_last
CREATE VIEW v_last AS
SELECT d.name AS database, d.family, d.server, d.identity, r.id AS run, r.started, r.command, r.exit_status,
    CASE WHEN r.findings > 0 THEN 'corrupt' WHEN r.complete THEN 'sound' ELSE 'unknown' END AS verdict,
    r.findings, r.findings_new, r.findings_gone, r.not_verified, r.seconds, r.bytes_read, r.paths,
    (SELECT max(s.started) FROM run s WHERE s.database = d.id AND s.findings = 0 AND s.complete = 1 AND s.command = 'CHECKDB')
        AS last_sound
FROM database d JOIN run r ON r.id = (SELECT max(id) FROM run WHERE database = d.id);
-- v_open_findings
CREATE VIEW v_open_findings AS
SELECT d.name AS database, f.id AS key, f.life, f.msg, f.check_id, f.object_name AS object, f.file, f.page, f.slot, f.text,
    f.first_seen, f.last_seen, f.last_looked, f.seen, s.kind AS source_kind, s.host, s.location,
    f.ack_by, f.ack_text, f.ack_until
FROM finding f JOIN source s ON s.id = f.source JOIN database d ON d.id = s.database
WHERE f.life <> 'gone';
-- watched_file
CREATE TABLE watched_file (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    version TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    since INTEGER NOT NULL,
    labels TEXT
, fingerprint TEXT) STRICT, WITHOUT ROWID;
-- window
CREATE TABLE window (
    id INTEGER PRIMARY KEY,
    image INTEGER NOT NULL REFERENCES image ON DELETE CASCADE,
    started TEXT NOT NULL,
    ended TEXT NOT NULL,
    allowed_seconds REAL NOT NULL,
    ranges INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    seconds REAL NOT NULL
) STRICT;
-- window_of_image
CREATE INDEX window_of_image ON window (image);
