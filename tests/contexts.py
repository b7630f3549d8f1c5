"""A context for tests of services and listeners: on SQLite and on PostgreSQL, with a clock that tests move.

The fixtures are imported by the `conftest.py` of each folder that needs them. A second context on the same store is a
second process: `composition.open_context(settings, clock=clock)`.
"""

import dataclasses
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

import msgspec
import pytest
import pytest_asyncio

from postroad import config, context
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import sessions
from postroad.services.people import users as account_users
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users

SECOND = 1_000_000
SECRET_KEY = "of the tests: 7Yq0wT4nZs9Lr2Xd5Kf8Hb1Vc6Jm3Pg"
Part = TypeVar("Part")
PASSWORD = "correct horse battery"


def concrete(part: object, kind: type[Part]) -> Part:
    """A part of a context as what it is; the context knows a protocol."""
    assert isinstance(part, kind)
    return part


class Clock:
    """Microseconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * SECOND

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of a store without rows, on each engine in turn."""
    return str(request.getfixturevalue(f"clean_{request.param}_url"))


def load(url: str, **sections: Mapping[str, object]) -> config.Settings:
    """Settings for a store, with the key of the tests; those of a section may be given."""
    return config.load(
        environment={},
        overrides={"database": {"url": url}, "security": {"installation_key": SECRET_KEY}, **sections},
    )


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    """The defaults, but for warm-up and free space: tests that are not about them send as much as they like."""
    return load(database_url, warmup={"enabled": False}, limits={"min_free_megabytes": 0})


async def begin_session(ctx: context.Context, user: users.User, *, methods: str = "password") -> sessions.Session:
    """A browser session of a user who has just logged in."""
    async with ctx.store.transaction() as tx:
        return await sessions.begin(ctx, tx, user, methods=methods)


@pytest_asyncio.fixture
async def ctx(settings: config.Settings, clock: Clock) -> AsyncIterator[context.Context]:
    async with composition.open_context(settings, clock=clock) as opened:
        yield opened


def with_settings(ctx: context.Context, section: str, **values: object) -> context.Context:
    """The same context with other settings in a section."""
    changed = msgspec.structs.replace(getattr(ctx.settings, section), **values)
    return dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, **{section: changed}))


@pytest_asyncio.fixture
async def other_process(
    ctx: context.Context, settings: config.Settings, clock: Clock
) -> AsyncIterator[context.Context]:
    """A second process on the same store."""
    async with composition.open_context(settings, clock=clock) as opened:
        yield opened


@pytest_asyncio.fixture
async def account(ctx: context.Context) -> stored_accounts.Account:
    return await accounts.create(ctx, "Shop")


@pytest_asyncio.fixture
async def owner(ctx: context.Context, account: stored_accounts.Account) -> users.User:
    """A user whose password is `PASSWORD`."""
    user, _ = await account_users.create(
        ctx, account.id, email="owner@example.com", password=PASSWORD, role=callers.Role.OWNER
    )
    return user
