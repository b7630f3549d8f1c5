"""Mail that lies in the store: rows that an account of its own has queued, for later or for now.

They are written straight into the tables, as the service would have written them, with their reservations in the
ledger, so that `postroad verify` finds nothing wrong with them. A backlog waits: messages of fifty recipients at a
thousand domains, due long after the benchmark has ended. A pile is ready: messages of one recipient, to be delivered
as soon as somebody does.
"""

import time

from benchmarks.peers import stores

ACCOUNT = "acc_" + "0" * 28
RECIPIENTS_PER_MESSAGE = 50
DOMAINS = 1000
# Longer than any run.
WAIT_MICROSECONDS = 7 * 86_400 * 1_000_000
MIME = "From: orders@example.com\r\nSubject: Later\r\n\r\n" + "This can wait.\r\n" * 60

# Ids end in ten digits: from a thousand million on they have the same length, and sort as their numbers do. `domain` is
# an expression of `n`, the number of a recipient.
SCRIPT = """
INSERT INTO accounts (id, name, status, available, reserved, created_at)
VALUES ('{account}', 'Backlog', 'active', 0, {recipients}, {now});

INSERT INTO ledger (account_id, id, kind, available, reserved, created_at)
VALUES ('{account}', 'led_0000000000000000000000000000', 'grant', {recipients}, 0, {now});

CREATE TEMPORARY TABLE waiting_messages (message_id TEXT NOT NULL, number INTEGER NOT NULL);
INSERT INTO waiting_messages
WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {messages})
SELECT 'em_000000000000000000' || (1000000000 + n), n FROM numbers;

INSERT INTO ledger (account_id, id, kind, available, reserved, message_id, created_at)
SELECT '{account}', 'led_000000000000000000' || (1000000000 + number), 'reserve', -{each}, {each}, message_id, {now}
FROM waiting_messages;

INSERT INTO messages (account_id, id, credential_id, source, sender, sender_key, subject, status, billing_status,
    recipient_count, credits_reserved, size, request_id, response, created_at)
SELECT '{account}', message_id, 'cred_0000000000000000000000000000', 'api', 'orders@example.com', 'orders@example.com',
    'Later', 'queued', 'reserved', {each}, {each}, {size}, 'req_0000000000000000000000000000',
    CAST('{{}}' AS {bytes_type}), {now}
FROM waiting_messages;

INSERT INTO bodies (account_id, message_id, mime)
SELECT '{account}', message_id, CAST('{mime}' AS {bytes_type}) FROM waiting_messages;

CREATE TEMPORARY TABLE waiting_recipients (
    message_id TEXT NOT NULL, recipient_id TEXT NOT NULL, email TEXT NOT NULL, domain TEXT NOT NULL);
INSERT INTO waiting_recipients
WITH RECURSIVE places (place) AS (SELECT 0 UNION ALL SELECT place + 1 FROM places WHERE place + 1 < {each}),
    numbered AS (SELECT message_id, number * {each} + place AS n FROM waiting_messages CROSS JOIN places),
    addressed AS (SELECT message_id, n, {domain} AS domain FROM numbered)
SELECT message_id, 'rcp_000000000000000000' || (1000000000 + n), 'waiting-' || n || '@' || domain, domain
FROM addressed;

INSERT INTO recipients (account_id, message_id, id, email, email_key, domain, status, billing_status, attempt_count)
SELECT '{account}', message_id, recipient_id, email, email, domain, 'queued', 'reserved', 0 FROM waiting_recipients;

INSERT INTO queue (account_id, message_id, recipient_id, queue_key, email, email_key, size, attempt_count, lost_leases,
    ready, queued_at, due_at)
SELECT '{account}', message_id, recipient_id, domain || ' {account}', email, email, {size}, 0, 0, {ready}, {now},
    {due_at}
FROM waiting_recipients;
"""


def load(store: stores.Store, *, recipients: int) -> None:
    """Queue `recipients`, a multiple of fifty, that wait."""
    if recipients % RECIPIENTS_PER_MESSAGE:
        raise ValueError(f"a backlog is made of messages with {RECIPIENTS_PER_MESSAGE} recipients: {recipients}")
    _load(
        store,
        recipients=recipients,
        each=RECIPIENTS_PER_MESSAGE,
        domain=f"'backlog-' || (n % {DOMAINS}) || '.example.org'",
        mime=MIME,
        wait=WAIT_MICROSECONDS,
    )


def queue_ready(store: stores.Store, *, messages: int, domain: str, mime: str) -> None:
    """Queue `messages` that are ready; `domain` is an SQL expression of `n`, and `mime` has no quote of SQL."""
    _load(store, recipients=messages, each=1, domain=domain, mime=mime, wait=0)


def _load(store: stores.Store, *, recipients: int, each: int, domain: str, mime: str, wait: int) -> None:
    now = time.time_ns() // 1000
    store.load(
        SCRIPT.format(
            account=ACCOUNT,
            recipients=recipients,
            messages=recipients // each,
            each=each,
            domain=domain,
            mime=mime,
            size=len(mime),
            bytes_type=store.bytes_type,
            ready=0 if wait else 1,
            now=now,
            due_at=now + wait,
        )
    )
