-- Version 2: how far runs have come, how they went, the list of responses, and a place to try a write.

-- Only unfinished responses have one.
CREATE TABLE checkpoints (
    response INTEGER PRIMARY KEY REFERENCES responses (seq) ON DELETE CASCADE,
    json     TEXT    NOT NULL
) STRICT;

CREATE TABLE traces (
    response INTEGER PRIMARY KEY REFERENCES responses (seq) ON DELETE CASCADE,
    json     TEXT    NOT NULL
) STRICT;

-- For the list of one owner. That of all owners goes from owner to owner: it is asked for seldom, and
-- an index of its own would cost every write.
CREATE INDEX responses_by_time ON responses (owner, created_at, id) WHERE is_deleted = 0;

-- How often a write was tried for its own sake.
CREATE TABLE checks (
    count INTEGER NOT NULL
) STRICT;

INSERT INTO checks (count) VALUES (0);

CREATE TRIGGER checkpoints_added AFTER INSERT ON checkpoints BEGIN
    UPDATE totals SET bytes = bytes + octet_length(new.json);
END;
CREATE TRIGGER checkpoints_changed AFTER UPDATE OF json ON checkpoints BEGIN
    UPDATE totals SET bytes = bytes + octet_length(new.json) - octet_length(old.json);
END;
CREATE TRIGGER checkpoints_removed AFTER DELETE ON checkpoints BEGIN
    UPDATE totals SET bytes = bytes - octet_length(old.json);
END;

CREATE TRIGGER traces_added AFTER INSERT ON traces BEGIN
    UPDATE totals SET bytes = bytes + octet_length(new.json);
END;
CREATE TRIGGER traces_changed AFTER UPDATE OF json ON traces BEGIN
    UPDATE totals SET bytes = bytes + octet_length(new.json) - octet_length(old.json);
END;
CREATE TRIGGER traces_removed AFTER DELETE ON traces BEGIN
    UPDATE totals SET bytes = bytes - octet_length(old.json);
END;
