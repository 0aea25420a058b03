-- Version 1.
--
-- `seq` is the order of writing. Items of a response are numbered input first, then output; items of a
-- conversation in the order in which they came. So one number says both which item is newest and
-- where it stands in its list.

CREATE TABLE responses (
    seq         INTEGER PRIMARY KEY,
    owner       TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    previous    TEXT,
    created_at  INTEGER NOT NULL,
    is_finished INTEGER NOT NULL CHECK (is_finished IN (0, 1)),
    -- A deleted row is here only because a living one continues it; nothing but its items is left.
    is_deleted  INTEGER NOT NULL CHECK (is_deleted IN (0, 1)),
    resource    TEXT,
    UNIQUE (owner, id),
    CHECK ((resource IS NULL) = is_deleted)
) STRICT;

CREATE INDEX responses_by_previous ON responses (owner, previous) WHERE previous IS NOT NULL;
CREATE INDEX responses_by_age ON responses (created_at) WHERE is_finished = 1 AND is_deleted = 0;
CREATE INDEX responses_unfinished ON responses (seq) WHERE is_finished = 0 AND is_deleted = 0;

CREATE TABLE conversations (
    seq        INTEGER PRIMARY KEY,
    owner      TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    -- The time of the last write, by the clock of this machine.
    touched_at INTEGER NOT NULL,
    metadata   TEXT    NOT NULL,
    UNIQUE (owner, id)
) STRICT;

CREATE INDEX conversations_by_touch ON conversations (touched_at);

CREATE TABLE items (
    seq          INTEGER PRIMARY KEY,
    owner        TEXT    NOT NULL,
    item_id      TEXT    NOT NULL,
    response     INTEGER REFERENCES responses (seq) ON DELETE CASCADE,
    conversation INTEGER REFERENCES conversations (seq) ON DELETE CASCADE,
    is_output    INTEGER NOT NULL CHECK (is_output IN (0, 1)),
    json         TEXT    NOT NULL,
    CHECK ((response IS NULL) <> (conversation IS NULL))
) STRICT;

CREATE INDEX items_by_id ON items (owner, item_id);
CREATE INDEX items_by_response ON items (response) WHERE response IS NOT NULL;
CREATE INDEX items_by_conversation ON items (conversation) WHERE conversation IS NOT NULL;

CREATE TABLE events (
    response        INTEGER NOT NULL REFERENCES responses (seq) ON DELETE CASCADE,
    sequence_number INTEGER NOT NULL,
    json            TEXT    NOT NULL,
    PRIMARY KEY (response, sequence_number)
) STRICT, WITHOUT ROWID;

-- The bytes of all JSON that is kept, so that retention by size need not read everything. Triggers
-- keep it, because they see also what a foreign key removes.
CREATE TABLE totals (
    bytes INTEGER NOT NULL
) STRICT;

INSERT INTO totals (bytes) VALUES (0);

CREATE TRIGGER responses_added AFTER INSERT ON responses BEGIN
    UPDATE totals SET bytes = bytes + coalesce(octet_length(new.resource), 0);
END;
CREATE TRIGGER responses_changed AFTER UPDATE OF resource ON responses BEGIN
    UPDATE totals SET bytes = bytes + coalesce(octet_length(new.resource), 0)
        - coalesce(octet_length(old.resource), 0);
END;
CREATE TRIGGER responses_removed AFTER DELETE ON responses BEGIN
    UPDATE totals SET bytes = bytes - coalesce(octet_length(old.resource), 0);
END;

CREATE TRIGGER conversations_added AFTER INSERT ON conversations BEGIN
    UPDATE totals SET bytes = bytes + octet_length(new.metadata);
END;
CREATE TRIGGER conversations_changed AFTER UPDATE OF metadata ON conversations BEGIN
    UPDATE totals SET bytes = bytes + octet_length(new.metadata) - octet_length(old.metadata);
END;
CREATE TRIGGER conversations_removed AFTER DELETE ON conversations BEGIN
    UPDATE totals SET bytes = bytes - octet_length(old.metadata);
END;

CREATE TRIGGER items_added AFTER INSERT ON items BEGIN
    UPDATE totals SET bytes = bytes + octet_length(new.json);
END;
CREATE TRIGGER items_removed AFTER DELETE ON items BEGIN
    UPDATE totals SET bytes = bytes - octet_length(old.json);
END;

CREATE TRIGGER events_added AFTER INSERT ON events BEGIN
    UPDATE totals SET bytes = bytes + octet_length(new.json);
END;
CREATE TRIGGER events_changed AFTER UPDATE OF json ON events BEGIN
    UPDATE totals SET bytes = bytes + octet_length(new.json) - octet_length(old.json);
END;
CREATE TRIGGER events_removed AFTER DELETE ON events BEGIN
    UPDATE totals SET bytes = bytes - octet_length(old.json);
END;
