"""Rows to store, and the few statements of their own that tests need beside the named queries."""

from collections.abc import Mapping
from typing import Any

from postroad.storage.engine.store import Row, Store, Transaction
from postroad.storage.mail import messages
from postroad.storage.people import accounts, sessions, users

NOW = 1_800_000_000_000_000

# Some seconds of work for either engine, and no rows to carry.
SLOW = (
    "WITH RECURSIVE counter (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < 200000000) "
    "SELECT COUNT(*) FROM counter"
)


def words(by_reason: Mapping[str, str]) -> set[str]:
    """The words of a list of exceptions, which has them by their reasons."""
    return {word for each in by_reason.values() for word in each.split()}


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


def recipient(message_id: str, number: int = 0, account_id: str = "acc_1", **changes: Any) -> messages.NewRecipient:
    values: dict[str, Any] = {
        "message_id": message_id,
        "id": f"rcp_{message_id}_{number}",
        "account_id": account_id,
        "email": f"Person{number}@example.org",
        "email_key": f"person{number}@example.org",
        "domain": "example.org",
    }
    return messages.NewRecipient(**(values | changes))


def entry(
    entry_id: str,
    account_id: str,
    *,
    available: int,
    reserved: int = 0,
    kind: str = accounts.LedgerKind.GRANT,
    **more: Any,
) -> accounts.LedgerEntry:
    values: dict[str, Any] = {"id": entry_id, "account_id": account_id, "kind": kind, "created_at": NOW}
    return accounts.LedgerEntry(**(values | more), available=available, reserved=reserved)


def reservation(message_id: str, recipients: int = 1) -> accounts.LedgerEntry:
    return entry("led_1", "acc_1", kind="reserve", available=-recipients, reserved=recipients, message_id=message_id)


def login(login_id: str = "lgn_1", **changes: Any) -> users.Login:
    """A login; `changes` to its fields."""
    email = f"{login_id}@example.com"
    fields = {"email": email, "email_key": email, "password_hash": "hash", "tokens_valid_from": NOW, "created_at": NOW}
    return users.Login(login_id, **{**fields, **changes})


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
        await accounts.record_entries(tx, [entry(f"led_first_{account_id}", account_id, available=credits)])


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
