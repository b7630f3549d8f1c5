-- compatible from: 12
-- Versions of templates, of which one is published, and layouts. `templates` has what is sent.
-- `uses` has the aliases of the layout and the parts, each between spaces.
ALTER TABLE templates ADD COLUMN version BIGINT;
ALTER TABLE templates ADD COLUMN layout TEXT COLLATE "C";
ALTER TABLE templates ADD COLUMN uses TEXT COLLATE "C";

CREATE TABLE template_versions (
    template_id TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    account_id TEXT COLLATE "C" NOT NULL,
    saved_at BIGINT NOT NULL,
    saved_by TEXT COLLATE "C" NOT NULL,
    published_at BIGINT,
    layout TEXT COLLATE "C",
    subject TEXT COLLATE "C" NOT NULL,
    -- Last, so that SQLite reads the others without them.
    text TEXT COLLATE "C",
    html TEXT COLLATE "C",
    sample TEXT COLLATE "C",
    PRIMARY KEY (template_id, number)
);
CREATE INDEX template_versions_by_account ON template_versions (account_id);
