-- compatible from: 12
-- Which messages were sent again, and as which. A message that is one names the other in its receipt.
CREATE TABLE resends (
    account_id TEXT NOT NULL,
    resend_of TEXT NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (account_id, resend_of, message_id)
) STRICT, WITHOUT ROWID;
