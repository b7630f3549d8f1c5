"""Rows to store, and the few statements of their own that tests need beside the named queries."""

from typing import Any

from postroad.storage import accounts, ledger, logins, messages, recipients, sessions
from postroad.storage.store import Row, Store, Transaction

NOW = 1_800_000_000_000_000

# Some seconds of work for either engine, and no rows to carry.
SLOW = (
    "WITH RECURSIVE counter (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < 200000000) "
    "SELECT COUNT(*) FROM counter"
)


def teach(store: Store, **statements: str) -> None:
    """Let a store know statements of a test as `test.name`; placeholders as the engine wants them."""
    known: dict[str, str] = store._statements  # type: ignore[attr-defined]
    known |= {f"test.{name}": statement for name, statement in statements.items()}


def message(message_id: str, account_id: str = "acc_1", **changes: Any) -> messages.NewMessage:
    values: dict[str, Any] = {
        "id": message_id,
        "account_id": account_id,
        "credential_id": "cred_1",
        "source": "api",
        "sender": "Shop <shop@example.com>",
        "sender_key": "shop@example.com",
        "subject": "Grüße",
        "recipient_count": 1,
        "credits_reserved": changes.get("recipient_count", 1),
        "size": 4,
        "request_id": f"req_{message_id}",
        "response": b'{"id": "x"}',
        "created_at": NOW,
        "mime": b"a\0\xff\n",
        "tags": (),
    }
    return messages.NewMessage(**(values | changes))


def old_message(store: Store, message_id: str) -> str:
    """The statements that store such a message where messages have no columns of their own for return paths."""
    octets = {"sqlite": "BLOB", "postgres": "BYTEA"}[store.dialect]
    return f"""
        INSERT INTO messages (id, account_id, credential_id, source, sender, sender_key, subject, status,
            billing_status, recipient_count, credits_reserved, size, request_id, response, created_at)
        VALUES ('{message_id}', 'acc_1', 'cred_1', 'api', 'Shop <shop@example.com>', 'shop@example.com', 'Hello',
            'queued', 'reserved', 1, 1, 4, 'req_{message_id}', CAST('x' AS {octets}), {NOW});
        INSERT INTO bodies (account_id, message_id, mime) VALUES ('acc_1', '{message_id}', CAST('text' AS {octets}));
    """  # noqa: S608 - of constants


# Its recipient in the queue, as versions before messages had times wrote it.
OLD_QUEUE = """
    INSERT INTO queue (account_id, message_id, recipient_id, queue_key, email, email_key, size, attempt_count,
        lost_leases, ready, queued_at, due_at)
    VALUES ('acc_1', 'em_1', 'rcp_em_1_0', 'example.org acc_1', 'a@example.org', 'a@example.org', 4, 0, 0, 1, 1, 1)
"""


def recipient(message_id: str, number: int = 0, account_id: str = "acc_1", **changes: Any) -> recipients.NewRecipient:
    values: dict[str, Any] = {
        "message_id": message_id,
        "id": f"rcp_{message_id}_{number}",
        "account_id": account_id,
        "email": f"Person{number}@example.org",
        "email_key": f"person{number}@example.org",
        "domain": "example.org",
    }
    return recipients.NewRecipient(**(values | changes))


def entry(
    entry_id: str, account_id: str, *, available: int, reserved: int = 0, kind: str = ledger.Kind.GRANT, **more: Any
) -> ledger.Entry:
    values: dict[str, Any] = {"id": entry_id, "account_id": account_id, "kind": kind, "created_at": NOW}
    return ledger.Entry(**(values | more), available=available, reserved=reserved)


def reservation(message_id: str, recipients: int = 1) -> ledger.Entry:
    return entry("led_1", "acc_1", kind="reserve", available=-recipients, reserved=recipients, message_id=message_id)


def login(login_id: str = "lgn_1", **changes: Any) -> logins.Login:
    """A login; `changes` to its fields."""
    email = f"{login_id}@example.com"
    fields = {"email": email, "email_key": email, "password_hash": "hash", "tokens_valid_from": NOW, "created_at": NOW}
    return logins.Login(login_id, **{**fields, **changes})


def session(session_id: str = "tok_1", **changes: Any) -> sessions.Session:
    """A browser session of `usr_1`; `changes` to its fields."""
    fields = {
        "login_id": "lgn_1",
        "user_id": "usr_1",
        "account_id": "acc_1",
        "kind": sessions.Kind.BROWSER,
        "name": "",
        "device": "Firefox on Linux",
        "network": "192.0.2.1",
        "methods": "password",
        "created_at": NOW,
        "last_used_at": NOW,
        "expires_at": NOW + 9,
        "confirmed_at": NOW,
    }
    return sessions.Session(session_id, **{**fields, **changes})


async def add_account(tx: Transaction, account_id: str = "acc_1", *, credits: int = 0) -> None:
    """An account, and its first credits with the entry that belongs to them."""
    await accounts.insert(tx, account_id, name=f"name of {account_id}", now=NOW)
    if credits:
        await ledger.record(tx, [entry(f"led_first_{account_id}", account_id, available=credits)])


async def add_old_account(tx: Transaction, *, credits: int) -> None:
    """Such an account where names need not be unique yet."""
    await tx.run_script(f"""
        INSERT INTO accounts (id, name, status, suspended_reason, available, reserved, created_at)
        VALUES ('acc_1', 'name of acc_1', 'active', NULL, 0, 0, {NOW})
    """)  # noqa: S608 - of constants
    await ledger.record(tx, [entry("led_first_acc_1", "acc_1", available=credits)])


async def add_old_user(tx: Transaction, number: int = 1, *, joined_at: int | None = None) -> None:
    """An owner of `acc_1` as the version before there were logins has created it."""
    name = "jo" if number == 1 else f"jo{number}"
    await tx.run_script(f"""
        INSERT INTO users (id, account_id, email, email_key, password_hash, role, tokens_valid_from, created_at)
        VALUES ('usr_{number}', 'acc_1', '{name}@example.com', '{name}@example.com', 'hash', 'owner', 1, 1)
    """)  # noqa: S608 - of constants
    if joined_at is not None:
        await tx.run_script(f"UPDATE users SET joined_at = {joined_at} WHERE id = 'usr_{number}'")  # noqa: S608


async def count(store: Store, table: str) -> int:
    teach(store, count=f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - a test's own word
    async with store.reading() as tx:
        row = await tx.fetch_one("test.count")
    assert row is not None
    return int(row[0])


async def balances(store: Store, account_id: str) -> tuple[int, int]:
    async with store.reading() as tx:
        account = await accounts.by_id(tx, account_id)
    assert account is not None
    return account.available, account.reserved


async def scan(store: Store, query: str, *arguments: object) -> list[Row]:
    async with store.scanning() as tx:
        return await tx.fetch(query, *arguments)
