"""A month of an account that sends much: by default a million messages, with all that the dashboard shows of them.

Written straight into the tables, as the service would have written them: messages with bodies, tags, metadata and
recipients, attempts, the ledger, the hours of the charts, what the bounce guard counts, suppressed addresses, a week of
webhook deliveries, an audit log. The newest messages are still queued. Its owner is an operator of the installation,
which has other accounts with a little mail. Nothing is random: a message's number decides all.
"""

import dataclasses
import pathlib
import time

from benchmarks.peers import postroad, stores
from postroad.model.events import events
from postroad.model.units import identifiers
from postroad.storage.operations import partitions

DAY = 86_400 * 1_000_000
DAYS = 30
EMAIL = "owner@example.com"
# Others in the same installation.
ACCOUNTS = 2_000
# The partitions of PostgreSQL with the retention periods of the defaults.
PARTITION_DAYS = {partitions.CONTENT: 4, partitions.MAIL: 12}
# One message in a hundred thousand has each of these; one in two, four or twenty has the common ones below.
RARE_RECIPIENT = "rare@example.org"
RARE_SENDER = "rare@example.com"
RARE_TAG = "rare"
COMMON_RECIPIENT = "everybody@gmail.com"
COMMON_SENDER = "orders@example.com"
COMMON_TAG = "receipt"
COMMON_CAMPAIGN = "spring"
MIME = (
    "From: orders@example.com\r\nTo: jo@example.net\r\nSubject: Your order\r\nMIME-Version: 1.0\r\n"
    'Content-Type: multipart/alternative; boundary="b"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nThank you.\r\n'
    "--b\r\nContent-Type: text/html\r\n\r\n<p>Thank <b>you</b>.</p>\r\n--b--\r\n"
)
# The engines' words for a number as hexadecimal digits, by the name of their type for bytes.
HEXADECIMAL = {"BLOB": "printf('%0{digits}x', {number})", "BYTEA": "lpad(to_hex({number}), {digits}, '0')"}

# `chance` is spread over 0 to 999 and repeats only after a thousand messages. Ids are made of time and number; those of
# recipients and entries differ from their message's in the last digit, so nothing has to be looked up.
SCRIPT = """
CREATE TEMPORARY TABLE mail (
    n BIGINT NOT NULL, message_id TEXT NOT NULL, created_at BIGINT NOT NULL, chance BIGINT NOT NULL,
    person BIGINT NOT NULL, queued BIGINT NOT NULL, each BIGINT NOT NULL);
INSERT INTO mail
WITH RECURSIVE numbers (n) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {messages}),
    timed AS (SELECT n, {start} + n * {step} AS created_at FROM numbers)
SELECT n, 'em_' || {hex_time} || {hex_number} || '0', created_at, (n * 7919 + n / 1000) % 1000, (n * 48271) % 200000,
    CASE WHEN n >= {messages} - {queued} THEN 1 ELSE 0 END, CASE WHEN n % 10 = 0 THEN 2 ELSE 1 END
FROM timed;

CREATE TEMPORARY TABLE receivers (
    message_id TEXT NOT NULL, recipient_id TEXT NOT NULL, email TEXT NOT NULL, domain TEXT NOT NULL,
    provider TEXT NOT NULL, status TEXT NOT NULL, created_at BIGINT NOT NULL, n BIGINT NOT NULL);
INSERT INTO receivers
WITH chosen AS (
    SELECT mail.*, place, CASE (person + place) % 10 WHEN 4 THEN 'outlook.com' WHEN 5 THEN 'outlook.com' WHEN 6 THEN
        'yahoo.com' WHEN 7 THEN 'icloud.com' WHEN 8 THEN 'company-' || (person % 500) || '.example' WHEN 9 THEN
        'mailbox.example' ELSE 'gmail.com' END AS domain
    FROM mail CROSS JOIN (SELECT 0 AS place UNION ALL SELECT 1) places WHERE place < each)
SELECT message_id, 'rcp_' || substr(message_id, 4, 27) || place,
    CASE WHEN place = 0 AND n % 100000 = 7 THEN '{rare_recipient}'
        WHEN place = 0 AND n % 20 = 3 THEN '{common_recipient}' ELSE 'person-' || person || '@' || domain END,
    CASE WHEN place = 0 AND n % 100000 = 7 THEN 'example.org' WHEN place = 0 AND n % 20 = 3 THEN 'gmail.com'
        ELSE domain END,
    CASE WHEN domain = 'gmail.com' OR (place = 0 AND n % 20 = 3) THEN 'google' WHEN domain = 'outlook.com' THEN
        'microsoft' WHEN domain = 'yahoo.com' THEN 'yahoo' WHEN domain = 'icloud.com' THEN 'apple' ELSE 'others' END,
    CASE WHEN queued = 1 THEN CASE WHEN chance < 300 THEN 'deferred' ELSE 'queued' END
        WHEN place = 0 AND chance < 10 THEN 'bounced' WHEN place = 0 AND chance < 15 THEN 'failed' ELSE 'delivered' END,
    created_at, n
FROM chosen;

INSERT INTO messages (account_id, id, credential_id, source, sender, sender_key, subject, status, billing_status,
    recipient_count, credits_reserved, size, request_id, response, created_at, ended_at)
SELECT '{account}', message_id, 'cred_' || substr(message_id, 4), CASE n % 5 WHEN 0 THEN 'smtp' ELSE 'api' END, sender,
    sender, 'Your order ' || n || ' is on its way', CASE WHEN queued = 1 THEN 'queued' WHEN chance >= 15 THEN
        'delivered' WHEN each = 2 THEN 'partial' ELSE 'failed' END,
    CASE WHEN queued = 1 THEN 'reserved' WHEN chance < 10 AND each = 1 THEN 'released' ELSE 'settled' END,
    each, each, {size}, 'req_' || substr(message_id, 4),
    CAST('{{"id": "' || message_id || '", "source": "api", "request_id": "req_' || substr(message_id, 4)
        || '", "from": "' || sender || '", "to": ["person-' || person || '@example.org"], "cc": [], "bcc": [], '
        || '"subject": "Your order ' || n || ' is on its way", "recipient_count": ' || each
        || ', "credits_reserved": ' || each
        || ', "headers": {{}}, "tags": [], "attachments": []}}' AS {bytes_type}), created_at,
    CASE WHEN queued = 1 THEN NULL ELSE created_at + 2000000 END
FROM (SELECT mail.*, CASE WHEN n % 100000 = 11 THEN '{rare_sender}' WHEN n % 4 = 0 THEN 'news@example.com'
    ELSE '{common_sender}' END AS sender FROM mail) AS sent;

INSERT INTO bodies (account_id, message_id, mime)
SELECT '{account}', message_id, CAST('{mime}' AS {bytes_type}) FROM mail;

INSERT INTO message_tags (account_id, tag, message_id)
SELECT '{account}', '{rare_tag}', message_id FROM mail WHERE n % 100000 = 13;
INSERT INTO message_tags (account_id, tag, message_id)
SELECT '{account}', 'newsletter', message_id FROM mail WHERE n % 4 = 0;
INSERT INTO message_tags (account_id, tag, message_id)
SELECT '{account}', '{common_tag}', message_id FROM mail WHERE n % 2 = 1;
INSERT INTO message_metadata (account_id, entry, message_id)
SELECT '{account}', 'order:' || n, message_id FROM mail WHERE n % 5 = 0;
INSERT INTO message_metadata (account_id, entry, message_id)
SELECT '{account}', 'campaign:{common_campaign}', message_id FROM mail WHERE n % 4 = 0;

INSERT INTO recipients (account_id, message_id, id, email, email_key, domain, status, billing_status, attempt_count,
    last_smtp_code, last_smtp_response, delivered_at, bounced_at)
SELECT '{account}', message_id, recipient_id, email, email, domain, status,
    CASE status WHEN 'delivered' THEN 'settled' WHEN 'failed' THEN 'settled' WHEN 'bounced' THEN 'released'
        ELSE 'reserved' END,
    CASE status WHEN 'queued' THEN 0 WHEN 'failed' THEN 10 ELSE 1 END,
    CASE status WHEN 'delivered' THEN 250 WHEN 'bounced' THEN 550 WHEN 'queued' THEN NULL ELSE 451 END,
    CASE status WHEN 'delivered' THEN '2.0.0 OK' WHEN 'bounced' THEN '5.1.1 no such user' WHEN 'queued' THEN NULL
        ELSE '4.2.1 try again later' END,
    CASE status WHEN 'delivered' THEN created_at + 2000000 END, CASE status WHEN 'bounced' THEN created_at + 2000000 END
FROM receivers;

INSERT INTO attempts (account_id, message_id, recipient_id, started_at, duration, provider_queue, host, address, tls,
    stage, verdict, fault, reason, smtp_code, enhanced_code, response, in_doubt)
SELECT '{account}', message_id, recipient_id, created_at + 1000000, 350000, provider, 'mx.' || domain, '192.0.2.25',
    'TLSv1.3', CASE status WHEN 'delivered' THEN 'content' ELSE 'recipient' END,
    CASE status WHEN 'deferred' THEN 'retry' ELSE status END,
    CASE status WHEN 'bounced' THEN 'address' WHEN 'delivered' THEN NULL ELSE 'rate' END,
    CASE status WHEN 'bounced' THEN 'unknown_address' WHEN 'delivered' THEN 'delivered' ELSE 'greylisted' END,
    CASE status WHEN 'delivered' THEN 250 WHEN 'bounced' THEN 550 ELSE 451 END,
    CASE status WHEN 'delivered' THEN '2.0.0' WHEN 'bounced' THEN '5.1.1' ELSE '4.2.1' END,
    CASE status WHEN 'delivered' THEN 'OK' WHEN 'bounced' THEN 'no such user' ELSE 'try again later' END, 0
FROM receivers WHERE status <> 'queued';
INSERT INTO attempt_conversations (account_id, message_id, recipient_id, started_at, conversation)
SELECT '{account}', message_id, recipient_id, created_at + 1000000,
    'RCPT TO:<' || email || '>' || CASE status WHEN 'bounced' THEN ' 550 no such user' ELSE ' 451 try again later' END
FROM receivers WHERE status IN ('bounced', 'failed', 'deferred');

INSERT INTO queue (account_id, message_id, recipient_id, queue_key, email, email_key, size, attempt_count, lost_leases,
    ready, queued_at, due_at)
SELECT '{account}', message_id, recipient_id, domain || ' {account}', email, email, {size},
    CASE status WHEN 'deferred' THEN 1 ELSE 0 END, 0, 0, created_at, {now} + {day}
FROM receivers WHERE status IN ('queued', 'deferred');

INSERT INTO ledger (account_id, id, kind, available, reserved, message_id, created_at)
SELECT '{account}', 'led_' || substr(message_id, 4), 'reserve', -each, each, message_id, created_at FROM mail;
INSERT INTO ledger (account_id, id, kind, available, reserved, message_id, created_at)
SELECT '{account}',
    'led_' || substr(recipient_id, 5, 27) || CASE substr(recipient_id, 32) WHEN '0' THEN 'a' ELSE 'b' END,
    CASE status WHEN 'bounced' THEN 'release' ELSE 'settle' END, CASE status WHEN 'bounced' THEN 1 ELSE 0 END, -1,
    message_id, created_at + 2000000
FROM receivers WHERE status NOT IN ('queued', 'deferred');
UPDATE accounts SET
    available = available - (SELECT COUNT(*) FROM receivers WHERE status <> 'bounced'),
    reserved = (SELECT COUNT(*) FROM receivers WHERE status IN ('queued', 'deferred'))
WHERE id = '{account}';

INSERT INTO hourly_counts (account_id, hour, provider, messages, recipients, delivered, bounced, failed, deferred)
SELECT '{account}', created_at / {hour}, '', COUNT(*), SUM(each), 0, 0, 0, 0 FROM mail GROUP BY created_at / {hour};
INSERT INTO hourly_counts (account_id, hour, provider, messages, recipients, delivered, bounced, failed, deferred)
SELECT '{account}', created_at / {hour}, provider, 0, 0, SUM(CASE status WHEN 'delivered' THEN 1 ELSE 0 END),
    SUM(CASE status WHEN 'bounced' THEN 1 ELSE 0 END), SUM(CASE status WHEN 'failed' THEN 1 ELSE 0 END),
    SUM(CASE status WHEN 'deferred' THEN 1 ELSE 0 END)
FROM receivers WHERE status <> 'queued' GROUP BY created_at / {hour}, provider;

INSERT INTO failure_counts (account_id, hour, provider, reason, bounced, failed)
SELECT '{account}', created_at / {hour}, provider, CASE status WHEN 'bounced' THEN 'unknown_address' ELSE 'greylisted'
    END, SUM(CASE status WHEN 'bounced' THEN 1 ELSE 0 END), SUM(CASE status WHEN 'failed' THEN 1 ELSE 0 END)
FROM receivers WHERE status IN ('bounced', 'failed') GROUP BY created_at / {hour}, provider, status;

INSERT INTO bounce_guard_days (account_id, day, recipients, bounces, complaints)
SELECT '{account}', created_at / {day}, COUNT(*), SUM(CASE status WHEN 'bounced' THEN 1 ELSE 0 END), 0
FROM receivers WHERE status NOT IN ('queued', 'deferred') GROUP BY created_at / {day};

INSERT INTO suppressions (account_id, email_key, source, reason, smtp_code, message_id, created_at)
SELECT '{account}', email, 'bounce', 'unknown_address', 550, MIN(message_id), MIN(created_at)
FROM receivers WHERE status = 'bounced' GROUP BY email;

INSERT INTO webhooks (id, account_id, url, events, enabled, secret_hint, created_at, updated_at, is_first, version,
    tags, sender_domains, mode, standard_signature, description, disabled_reason, format, format_events)
VALUES ('{webhook}', '{account}', 'https://hooks.example.com/postroad', '{events}', 1, 'whsec_…1a2b',
    {start}, {start}, 1, 1, '', '', 'live', 0, '', '', 'postroad', '');
INSERT INTO webhook_deliveries (account_id, webhook_id, id, event_id, event_type, message_id, recipient_id, url, body,
    state, attempt_count, due_at, created_at, ended_at)
SELECT '{account}', '{webhook}', 'whd_' || substr(recipient_id, 5), 'evt_' || substr(recipient_id, 5),
    'email.' || status, message_id, recipient_id, 'https://hooks.example.com/postroad',
    CAST('{{"id": "evt_' || substr(recipient_id, 5) || '", "type": "email.' || status
        || '", "created_at": "2026-01-01T00:00:00Z", "data": {{"email_id": "' || message_id || '", "recipient_id": "'
        || recipient_id || '", "to": "' || email || '", "from": "bounces@example.com", "subject": "Your order"}}}}'
        AS {bytes_type}),
    CASE WHEN n % 200 = 17 THEN 'failed' ELSE 'succeeded' END, 1, created_at, created_at + 2000000, created_at + 2500000
FROM receivers WHERE status NOT IN ('queued', 'deferred') AND created_at > {now} - 7 * {day};
INSERT INTO webhook_attempts (account_id, webhook_id, delivery_id, number, started_at, duration, status_code,
    response_body, error)
SELECT account_id, webhook_id, id, 1, created_at, 120000, CASE state WHEN 'failed' THEN 500 ELSE 200 END, 'ok', NULL
FROM webhook_deliveries WHERE webhook_id = '{webhook}';

INSERT INTO audit_log (account_id, id, actor_kind, user_id, actor, action, subject, detail, request_id, client_address,
    created_at)
SELECT '{account}', 'aud_' || substr(message_id, 4), 'operator', NULL, '', 'template.changed', 'receipt', '', '', '',
    created_at
FROM mail WHERE n % 100 = 0;

INSERT INTO accounts (id, name, status, available, reserved, created_at)
SELECT 'acc_' || {hex_other} || '00000000000000', 'Account ' || n, 'active', 1000, 0, {start} + n
FROM mail WHERE n < {accounts};
INSERT INTO hourly_counts (account_id, hour, provider, messages, recipients, delivered, bounced, failed, deferred)
SELECT 'acc_' || {hex_other} || '00000000000000', {now} / {hour} - back, provider, 5, 5, 4, 1, 0, 1
FROM mail CROSS JOIN (SELECT 0 AS back UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 23) AS hours
    CROSS JOIN (SELECT '' AS provider UNION ALL SELECT 'google' UNION ALL SELECT 'microsoft') AS providers
WHERE n < {accounts};

DROP TABLE receivers;
DROP TABLE mail;
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What the store holds then: whose mail it is, a login, when the mail began and ended, a message and a webhook."""

    account_id: str
    password: str
    start: int
    now: int
    message_id: str
    webhook_id: str


def fill(configuration: pathlib.Path, store: stores.Store, *, messages: int, queued: int) -> Filled:
    """Write the month of the benchmark's account, of which the newest `queued` messages wait, and its owner's login."""
    account = str(postroad.operate(configuration, "account", "show", postroad.ACCOUNT)["account"]["id"])
    made = postroad.operate(configuration, "user", "create", EMAIL, "--account", postroad.ACCOUNT)
    postroad.operate(configuration, "operator", "add", EMAIL)
    password = str(made["user"]["password"])
    return write(store, account, password=password, messages=messages, queued=queued)


def write(store: stores.Store, account: str, *, password: str, messages: int, queued: int) -> Filled:
    """The same for an account that has no webhooks yet, and whose owner has this password already."""
    now = time.time_ns() // 1000
    start, step = now - DAYS * DAY, DAYS * DAY // messages
    words = HEXADECIMAL[store.bytes_type]
    if store.bytes_type == "BYTEA":
        store.load(_partitions(start, now))
    webhook_id = "whk_" + f"{start:014x}".ljust(28, "0")
    store.load(
        SCRIPT.format(
            account=account,
            webhook=webhook_id,
            events=" ".join(events.SUBSCRIBABLE),
            messages=messages,
            accounts=ACCOUNTS,
            queued=queued,
            start=start,
            step=step,
            now=now,
            day=DAY,
            hour=DAY // 24,
            hex_time=words.format(digits=14, number="created_at"),
            hex_other=words.format(digits=14, number="n"),
            hex_number=words.format(digits=13, number="n"),
            rare_recipient=RARE_RECIPIENT,
            common_recipient=COMMON_RECIPIENT,
            rare_sender=RARE_SENDER,
            common_sender=COMMON_SENDER,
            rare_tag=RARE_TAG,
            common_tag=COMMON_TAG,
            common_campaign=COMMON_CAMPAIGN,
            mime=MIME,
            size=len(MIME),
            bytes_type=store.bytes_type,
        ),
    )
    middle = messages // 2
    message_id = f"em_{start + middle * step:014x}{middle:013x}0"
    return Filled(
        account_id=account, password=password, start=start, now=now, message_id=message_id, webhook_id=webhook_id
    )


def _partitions(start: int, now: int) -> str:
    """Partitions as they would have begun while the mail was accepted."""
    return "".join(
        f"SELECT extend_mail_partitions(ARRAY{list(tables)}, '{identifiers.at(identifiers.MESSAGE, bound)}');\n"
        for tables, days in PARTITION_DAYS.items()
        for bound in range(start, now + 2 * days * DAY, days * DAY)
    )
