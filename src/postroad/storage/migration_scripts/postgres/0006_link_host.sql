-- compatible from: 1

-- The host of the unsubscribe links of the mail of a domain; NULL for that of the installation.
ALTER TABLE domains ADD COLUMN link_host TEXT COLLATE "C";
