-- compatible from: 12
-- Which messages were sent again, and as which. A message that is one names the other in its receipt.
CREATE TABLE resends (
    account_id TEXT COLLATE "C" NOT NULL,
    resend_of TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, resend_of, message_id)
);
