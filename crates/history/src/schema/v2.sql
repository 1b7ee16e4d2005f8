-- Version 2: windows of time.

-- A window in which ranges of an image were swept: how many, how many bytes, and the seconds for them.
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
CREATE INDEX window_of_image ON window (image);

-- The ranges of an image that is not closed yet whose parts are there, and what their pages with findings held.
CREATE TABLE part (
    plan TEXT NOT NULL,
    task INTEGER NOT NULL,
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    is_read INTEGER NOT NULL,
    held TEXT,
    PRIMARY KEY (plan, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX part_of_window ON part (window);

-- Since when a range is known: what was never read is no older than that.
ALTER TABLE coverage ADD COLUMN known_since TEXT;
