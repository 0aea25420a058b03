-- What a key was claimed for. Claims of earlier versions have no note.
ALTER TABLE taken ADD COLUMN note TEXT;
