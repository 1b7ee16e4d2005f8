-- Version 5: what a few places of a file hold. A row without it is compared by size and times alone.

ALTER TABLE watched_file ADD COLUMN fingerprint TEXT;
-- For each file, when the backup was put into the queue: a list of JSON, empty where nothing is known.
ALTER TABLE backup ADD COLUMN fingerprints TEXT NOT NULL DEFAULT '[]';
