-- compatible from: 12
-- Versions of templates, of which one is published, and layouts. `templates` has what is sent.
-- `uses` has the aliases of the layout and the parts, each between spaces.
ALTER TABLE templates ADD COLUMN version INTEGER;
ALTER TABLE templates ADD COLUMN layout TEXT;
ALTER TABLE templates ADD COLUMN uses TEXT;

CREATE TABLE template_versions (
    template_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    account_id TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    saved_by TEXT NOT NULL,
    published_at INTEGER,
    layout TEXT,
    subject TEXT NOT NULL,
    -- Last, so that SQLite reads the others without them.
    text TEXT,
    html TEXT,
    sample TEXT,
    PRIMARY KEY (template_id, number)
) STRICT;
CREATE INDEX template_versions_by_account ON template_versions (account_id);
