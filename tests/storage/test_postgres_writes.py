"""Changes that PostgreSQL gets together: which ones, as which statement, and how many round trips a message costs."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import asyncpg
import pytest
from asyncpg import connection as asyncpg_connection

from postroad import config, context
from postroad.mail.accept import send_limits
from postroad.model.bounces import disposition
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import api_keys, authentication, credentials
from postroad.storage.engine import postgres, queries
from postroad.storage.mail import messages
from tests import accepted_mail, contexts
from tests.services import claimed_mail

ROUND_TRIPS: Final = ("execute", "fetch", "fetchrow", "copy_records_to_table")
TABLES: Final = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
)
COLUMNS: Final = """
SELECT DISTINCT attname::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0"""
WORD: Final = re.compile(r"[a-z_]+")


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("SELECT 1 FROM messages JOIN bodies ON true", {"messages", "bodies"}),
        ("INSERT INTO rates (id) SELECT * FROM unnest($1::text[]) ON CONFLICT (id) DO UPDATE SET id = 1", {"rates"}),
        ("UPDATE queue SET ready = 1 FROM unnest($1::text[]) AS held (id) WHERE queue.id = held.id", {"queue"}),
        ("DELETE FROM queue USING recipients WHERE true", {"queue", "recipients"}),
        ("-- Those FROM ledger.\nSELECT id FROM accounts ORDER BY id FOR UPDATE SKIP LOCKED", {"accounts"}),
        ("WITH own AS (SELECT 1 FROM holds) SELECT * FROM own", {"holds", "own"}),
        ("SELECT FROM pg_sleep(1)", set()),
    ],
)
def test_the_tables_of_a_statement_are_known(statement: str, expected: set[str]) -> None:
    assert postgres.tables_of(statement) == expected


async def test_no_table_of_any_query_is_overlooked(clean_postgres_url: str) -> None:
    """Except those that have the name of a column: they cannot be told apart here."""
    connection = await asyncpg.connect(clean_postgres_url)
    tables = {name for (name,) in await connection.fetch(TABLES)}
    columns = {name for (name,) in await connection.fetch(COLUMNS)}
    await connection.close()
    for name, statement in queries.load("postgres").items():
        # Never combined with a change.
        if name in {"consistency.hold", "migrations.create_table", "table_copy.lock"}:
            continue
        text = re.sub(r"--.*|'[^']*'|\bAS \w+(?:\s\([^)]*\))?|\w+\.\w+|\w+\(", "", statement)
        named = set(WORD.findall(text)) & tables - columns
        assert named <= postgres.tables_of(statement), name
        assert not re.search(r"\bFROM\s+\w+(?: AS \w+)?,\s+\w", text), f"{name}: a table after a comma is not seen"


def test_one_change_is_sent_as_it_is() -> None:
    assert postgres.combine(("DELETE FROM a WHERE id = $1;",)) == "DELETE FROM a WHERE id = $1;"


def test_several_changes_become_one_statement_with_the_arguments_of_all() -> None:
    statements = (
        "INSERT INTO a VALUES ($1, $2);",
        "-- All of b.\nUPDATE b SET c = $2 WHERE d = $1;",
        "DELETE FROM e WHERE f = $1;",
    )
    assert postgres.combine(statements) == (
        "WITH change_1 AS (\nINSERT INTO a VALUES ($1, $2)\n), "
        "change_2 AS (\n-- All of b.\nUPDATE b SET c = $4 WHERE d = $3\n), "
        "change_3 AS (\nDELETE FROM e WHERE f = $5\n) SELECT"
    )


@pytest.fixture
async def ctx(clean_postgres_url: str) -> AsyncIterator[context.Context]:
    overrides: dict[str, dict[str, object]] = {
        "database": {"url": clean_postgres_url},
        "security": {"installation_key": contexts.SECRET_KEY},
        "warmup": {"enabled": False},
    }
    settings = config.load(environment={}, overrides=overrides)
    async with composition.open_context(settings, clock=contexts.Clock()) as opened:
        yield opened


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first word of each statement that is sent to the server; COPY takes two round trips."""
    statements: list[str] = []

    def noting(method: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def call(self: object, query: str, *arguments: object, **options: object) -> object:
            statements.append(re.sub(r"--.*\n", "", query).split()[0].rstrip(";"))
            return await method(self, query, *arguments, **options)

        return call

    for name in ROUND_TRIPS:
        monkeypatch.setattr(asyncpg_connection.Connection, name, noting(getattr(asyncpg_connection.Connection, name)))
    return statements


async def test_a_message_takes_few_round_trips(ctx: context.Context, sent: list[str]) -> None:
    shop = await accounts.create(ctx, "Shop")
    await accepted_mail.allow_sending(ctx, shop.id)
    await accepted_mail.accept(ctx, shop.id, key="first")  # asks for the domain, and remembers it
    await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    sent.clear()
    await accepted_mail.accept(ctx, shop.id, key="second", tags=("tag",), metadata={"order": "1"})
    # Locks the account, which has its rate, looks up the key, and writes.
    assert sent == ["BEGIN", "SELECT", "SELECT", "WITH", "COMMIT"]
    (claim,) = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    sent.clear()
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, disposition.Verdict.DELIVERED)])
    # Locks the account, records the recipient, adds to the bounce guard's day, evaluates it, writes.
    assert sent == ["BEGIN", "SELECT", "UPDATE", "INSERT", "SELECT", "WITH", "COMMIT"]


async def test_what_the_first_message_of_an_account_looks_up_begins_no_transaction(
    ctx: context.Context, sent: list[str]
) -> None:
    shop = await accounts.create(ctx, "Shop")
    await accepted_mail.allow_sending(ctx, shop.id)
    await credentials.create(ctx, shop.id, "main")
    _, secret = await api_keys.create(ctx, shop.id, credential_id=None, name="key", scopes=frozenset({"send"}))
    sent.clear()
    await send_limits.sending_domain(ctx, shop.id, accepted_mail.DOMAIN)
    await send_limits.is_charged(ctx, shop.id)
    await authentication.authenticate(ctx, f"Bearer {secret}", client_address="192.0.2.1")
    # Whether access has changed, the domain, its owner, whether the account is charged, the key, whether it is closed.
    assert sent == ["SELECT"] * 6


async def test_large_bodies_are_copied(ctx: context.Context, sent: list[str]) -> None:
    shop = await accounts.create(ctx, "Shop")
    await accepted_mail.allow_sending(ctx, shop.id)
    text = "x" * messages.MAX_INSERTED_BYTES
    message_id = await accepted_mail.accept(ctx, shop.id, text=text)
    assert "bodies" in sent
    async with ctx.store.reading() as tx:
        body = await messages.body(tx, shop.id, message_id)
    assert body is not None
    assert len(body) > len(text)
