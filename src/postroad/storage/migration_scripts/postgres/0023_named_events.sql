-- compatible from: 12
-- The event types that the account's webhook endpoints name, as the account's lock reads them: accepting and deferring mail
-- look for endpoints only if one of them wants to know. A process of the version before sets none of the types in question.
ALTER TABLE accounts ADD COLUMN named_events TEXT COLLATE "C" NOT NULL DEFAULT '';
