-- Version 4: a database is its family, its name and its server. One that was restored elsewhere keeps its family and is another one.

DROP VIEW v_last;
DROP VIEW v_coverage;
-- Family, server and name as one text; the family alone where its replicas are taken for one.
ALTER TABLE database RENAME COLUMN family TO identity;
ALTER TABLE database ADD COLUMN family TEXT NOT NULL DEFAULT '';
ALTER TABLE database ADD COLUMN server TEXT NOT NULL DEFAULT '';
ALTER TABLE progress RENAME COLUMN family TO identity;
ALTER TABLE alarm RENAME COLUMN family TO identity;

-- The backups in which a finding is: each as one machine names its files, as a list of JSON.
CREATE TABLE finding_file (
    finding INTEGER NOT NULL REFERENCES finding ON DELETE CASCADE,
    image INTEGER NOT NULL REFERENCES image ON DELETE CASCADE,
    host TEXT NOT NULL,
    paths TEXT NOT NULL,
    PRIMARY KEY (finding, image, host, paths)
) STRICT, WITHOUT ROWID;
INSERT INTO finding_file (finding, image, host, paths)
SELECT f.id, f.last_image, r.host, '["' || replace(replace(replace(r.paths, '\', '\\'), '"', '\"'), ', ', '","') || '"]'
FROM finding f JOIN source s ON s.id = f.source JOIN run r ON r.id = f.last_run WHERE s.kind = 'backup' AND f.life <> 'gone';

-- What was taken for no backup is looked at again: compressed files and others that may hold one are told now.
UPDATE watched_file SET labels = NULL WHERE labels = '"Other"';

-- Where each copy belongs. The place of a backup is the name of its database, if its labels say which server made it.
CREATE TEMP TABLE moved AS
SELECT source, former, family, server, name, family || ' on ' || lower(server) || ' as ' || name AS identity
FROM (
    SELECT s.id AS source, d.id AS former, d.identity AS family, s.host AS server,
        CASE WHEN s.kind = 'backup' AND s.location <> '' AND instr(s.location, '/') + instr(s.location, '\') = 0 THEN s.location
            ELSE d.name END AS name
    FROM source s JOIN database d ON d.id = s.database
);
UPDATE database SET family = identity;
-- The copy that was seen first keeps the row.
UPDATE database SET (identity, server, name) = (
    SELECT m.identity, m.server, m.name FROM temp.moved m WHERE m.former = database.id ORDER BY m.source LIMIT 1
) WHERE id IN (SELECT former FROM temp.moved);
INSERT INTO database (identity, family, server, name, first_seen)
SELECT m.identity, m.family, m.server, m.name, d.first_seen
FROM temp.moved m JOIN database d ON d.id = m.former
WHERE m.identity <> d.identity GROUP BY m.identity;
CREATE TEMP TABLE parted AS
SELECT DISTINCT m.former, d.id AS latter FROM temp.moved m JOIN database d ON d.identity = m.identity WHERE d.id <> m.former;
UPDATE source SET database = (
    SELECT d.id FROM temp.moved m JOIN database d ON d.identity = m.identity WHERE m.source = source.id
);
UPDATE run SET database = (SELECT s.database FROM image i JOIN source s ON s.id = i.source WHERE i.id = run.image)
WHERE image IS NOT NULL;

-- What was read and proven in a copy says nothing of another one.
INSERT INTO coverage (database, file, first, depth, pages, pages_in_use, read_at, image, evidence, known_since)
SELECT p.latter, c.file, c.first, c.depth, c.pages, c.pages_in_use, c.read_at, c.image, c.evidence, c.known_since
FROM temp.parted p JOIN coverage c ON c.database = p.former;
UPDATE coverage SET read_at = NULL, image = NULL, evidence = 'read'
WHERE database IN (SELECT former FROM temp.parted UNION SELECT latter FROM temp.parted)
    AND (SELECT s.database FROM image i JOIN source s ON s.id = i.source WHERE i.id = coverage.image) IS NOT database;
INSERT INTO object (database, object_id, index_id, partition, type, schema_name, object_name, index_name)
SELECT p.latter, o.object_id, o.index_id, o.partition, o.type, o.schema_name, o.object_name, o.index_name
FROM temp.parted p JOIN object o ON o.database = p.former;
CREATE TEMP TABLE twin AS
SELECT o.id AS former, t.id AS latter, t.database
FROM temp.parted p JOIN object o ON o.database = p.former
JOIN object t ON t.database = p.latter AND t.object_id = o.object_id AND t.index_id = o.index_id AND t.partition = o.partition;
CREATE INDEX temp.twin_of ON twin (former);
UPDATE object_count SET object = (
    SELECT t.latter FROM temp.twin t JOIN run r ON r.database = t.database
    WHERE t.former = object_count.object AND r.id = object_count.run
) WHERE EXISTS (
    SELECT 1 FROM temp.twin t JOIN run r ON r.database = t.database
    WHERE t.former = object_count.object AND r.id = object_count.run
);
UPDATE relation SET object = (
    SELECT t.latter FROM temp.twin t JOIN image i ON i.id = relation.image JOIN source s ON s.id = i.source
    WHERE t.former = relation.object AND s.database = t.database
) WHERE EXISTS (
    SELECT 1 FROM temp.twin t JOIN image i ON i.id = relation.image JOIN source s ON s.id = i.source
    WHERE t.former = relation.object AND s.database = t.database
);

-- An alarm about reads and proofs is about each of the databases now, and is not raised again.
INSERT OR IGNORE INTO alarm (identity, kind, promise, since, judged)
SELECT d.identity, a.kind, a.promise, a.since, a.judged
FROM alarm a JOIN database d ON d.family = a.identity WHERE a.kind = 'promise-broken';
DELETE FROM alarm WHERE kind = 'promise-broken' AND identity IN (SELECT family FROM database WHERE family <> identity);
DROP TABLE temp.twin;
DROP TABLE temp.parted;
DROP TABLE temp.moved;

CREATE VIEW v_last AS
SELECT d.name AS database, d.family, d.server, d.identity, r.id AS run, r.started, r.command, r.exit_status,
    CASE WHEN r.findings > 0 THEN 'corrupt' WHEN r.complete THEN 'sound' ELSE 'unknown' END AS verdict,
    r.findings, r.findings_new, r.findings_gone, r.not_verified, r.seconds, r.bytes_read, r.paths,
    (SELECT max(s.started) FROM run s WHERE s.database = d.id AND s.findings = 0 AND s.complete = 1 AND s.command = 'CHECKDB')
        AS last_sound
FROM database d JOIN run r ON r.id = (SELECT max(id) FROM run WHERE database = d.id);

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
