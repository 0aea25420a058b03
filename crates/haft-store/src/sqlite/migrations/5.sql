-- What the server notes about itself: the ids of its sealing keys, the time when it last ran.
CREATE TABLE server_notes (
    key  TEXT NOT NULL PRIMARY KEY,
    note TEXT NOT NULL
) STRICT, WITHOUT ROWID;
