"""Records the statements that this version runs on a database, for a test of the next version.

    python -m tests.storage.statement_recorder sqlite:////tmp/new.db tests/storage/previous_version/sqlite.json

runs a day in the life of an installation on a new, empty database, and writes every statement with its arguments and
its result. The next version replays them on its own schema (`test_previous_version.py`).
"""

import asyncio
import collections
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from unittest import mock

from postroad import config
from postroad.model import caller
from postroad.model.bounces import disposition
from postroad.roles import composition
from postroad.services import context, templates
from postroad.services.accounts import registry as accounts
from postroad.services.auth import api_keys, authentication, credentials
from postroad.services.auth import users as account_users
from postroad.services.dkim import domain_keys
from postroad.services.domains import registry as domains
from postroad.services.maintenance import cleanup
from postroad.services.suppressions import registry as suppressions
from postroad.services.webhooks import endpoints
from postroad.storage import messages, migrations
from postroad.storage import suppressions as stored_suppressions
from postroad.storage.postgres import PostgresTransaction
from postroad.storage.sqlite import SqliteTransaction
from tests import accepted_mail, contexts
from tests.services import claimed_mail
from tests.storage import webhook_samples

METHODS: Final = ("fetch", "fetch_one", "fetch_many", "execute", "execute_many", "execute_later", "add_rows")


async def live(ctx: context.Context) -> None:
    """Accounts are set up, mail is accepted, sent and bounced, and maintenance runs."""
    shop, bank = await accounts.create(ctx, "Shop"), await accounts.create(ctx, "Bank")
    await accepted_mail.allow_sending(ctx, shop.id, amount=20)
    await domain_keys.record(ctx, await domains.by_name(ctx, shop.id, accepted_mail.DOMAIN))
    credential, password = await credentials.create(ctx, shop.id, "main")
    scopes = frozenset({caller.Permission.SEND})
    _, key = await api_keys.create(ctx, shop.id, name="key", credential_id=credential.id, scopes=scopes)
    await account_users.create(
        ctx, shop.id, email="owner@example.com", password=contexts.PASSWORD, role=caller.Role.OWNER
    )
    await templates.put(ctx, shop.id, "welcome", subject="Hello", text="You", html=None)
    await suppressions.add(ctx, shop.id, "gone@example.net", reason="asked", source=stored_suppressions.Source.OPERATOR)
    await endpoints.save(ctx, shop.id, url="https://hooks.example.com/")
    await authentication.log_in(ctx, "owner@example.com", contexts.PASSWORD, client_address="192.0.2.1")
    await authentication.authenticate(ctx, f"Bearer {key}", client_address="192.0.2.1")
    await authentication.authenticate_password(ctx, credential.username, password, client_address="192.0.2.1")
    message_id = await accepted_mail.accept(
        ctx, shop.id, to=("a@example.net", "b@example.net", "c@example.net"), key="one", tags=("tag",)
    )
    verdicts = {"a": disposition.Verdict.DELIVERED, "b": disposition.Verdict.BOUNCED, "c": disposition.Verdict.RETRY}
    claims = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, one, verdicts[one.email_key[0]], recipient_count=3) for one in claims]
    )
    await webhook_samples.claim(ctx.store)
    async with ctx.store.reading() as tx:
        await messages.by_id(tx, shop.id, message_id)
    await accounts.suspend(ctx, bank.id, "unpaid")
    await accounts.resume(ctx, bank.id)
    await cleanup.sweep(ctx)


@contextlib.contextmanager
def recorded(calls: list[dict[str, Any]], statements: dict[str, str]) -> Iterator[None]:
    """Record the calls of all transactions, which are numbered in the order of their first call."""
    numbers: dict[int, int] = collections.defaultdict(lambda: len(numbers))
    kept: list[object] = []  # so that no two transactions have one identity
    busy: set[int] = set()  # transactions one of whose methods calls another

    def recording(kind: type, method: str) -> Callable[..., Awaitable[object]]:
        original = getattr(kind, method)

        async def call(self: SqliteTransaction | PostgresTransaction, query: str, *arguments: object) -> object:
            if id(self) in busy:
                return await original(self, query, *arguments)
            kept.append(self)
            busy.add(id(self))
            try:
                result = await original(self, query, *arguments)
            finally:
                busy.discard(id(self))
            if method != "add_rows":
                statements[query] = self._statements[query]
            entry = {"tx": numbers[id(self)], "method": method, "query": query}
            calls.append(entry | {"arguments": encoded(arguments), "result": encoded(result)})
            return result

        return call

    with contextlib.ExitStack() as stack:
        for kind in (SqliteTransaction, PostgresTransaction):
            for method in METHODS:
                stack.enter_context(mock.patch.object(kind, method, recording(kind, method)))
        yield


def encoded(value: object) -> object:
    """The value for JSON; bytes as an object."""
    if isinstance(value, bytes | memoryview):
        return {"bytes": bytes(value).hex()}
    if value is None or isinstance(value, str | int | float):
        return value
    assert isinstance(value, Iterable)
    return [encoded(part) for part in value]


def decoded(value: object) -> object:
    """The value as it was."""
    if isinstance(value, dict):
        return bytes.fromhex(value["bytes"])
    return tuple(decoded(part) for part in value) if isinstance(value, list) else value


async def record(url: str) -> dict[str, Any]:
    """All statements of a life on a new database."""
    overrides: dict[str, dict[str, object]] = {
        "database": {"url": url},
        "security": {"secret_key": contexts.SECRET_KEY},
        "warmup": {"enabled": False},
    }
    settings = config.load(environment={}, overrides=overrides)
    calls: list[dict[str, Any]] = []
    statements: dict[str, str] = {}
    async with composition.open_context(settings, clock=contexts.Clock()) as ctx:
        with recorded(calls, statements):
            await live(ctx)
        version = migrations.known(ctx.store.dialect)[-1].version
    return {"version": version, "statements": dict(sorted(statements.items())), "calls": calls}


def text_of(made: dict[str, Any]) -> str:
    """JSON with a line for each statement and each call."""

    def lines(values: Iterable[str]) -> str:
        return ",\n".join(values)

    def dump(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    statements = lines(f"{dump(name)}: {dump(text)}" for name, text in made["statements"].items())
    calls = lines(dump(call) for call in made["calls"])
    return f'{{"version": {made["version"]},\n"statements": {{\n{statements}\n}},\n"calls": [\n{calls}\n]}}\n'


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(text_of(asyncio.run(record(sys.argv[1]))), encoding="utf-8")
