-- compatible from: 12
-- The subdomain for return paths whose MX record the last DNS check found; empty: envelope senders are at the domain.
ALTER TABLE domains ADD COLUMN return_path_domain TEXT NOT NULL DEFAULT '';
-- The domain of a message's envelope senders, chosen when it is accepted; empty: that of its sender.
ALTER TABLE messages ADD COLUMN return_path_domain TEXT NOT NULL DEFAULT '';
