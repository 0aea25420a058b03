-- What is done only once, whoever asks for it again: calls that somebody has allowed.
CREATE TABLE taken (
    owner TEXT NOT NULL,
    word  TEXT NOT NULL,
    PRIMARY KEY (owner, word)
) STRICT, WITHOUT ROWID;
