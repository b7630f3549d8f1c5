"""Last uses: written in the background, once a minute for each secret, and never in anybody's way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services.people import access_cache, api_keys, credentials, last_used
from postroad.storage.engine import store
from postroad.storage.people import credentials as stored
from tests import contexts
from tests.contexts import SECOND, Clock
from tests.services.people.test_schemes import basic, bearer, who_is


class RefusingStore:
    """A store that is away."""

    dialect = "none"

    def __init__(self) -> None:
        self.asked = 0

    @contextlib.asynccontextmanager
    async def transaction(self, _party: str = "") -> AsyncIterator[store.Transaction]:
        self.asked += 1
        if self.asked:
            raise errors.ServiceUnavailable("the database cannot be reached")
        yield NotImplemented

    leasing = reading = looking_up = scanning = transaction

    async def close(self) -> None:
        pass


async def used_at(ctx: context.Context, credential: stored.Credential) -> int | None:
    async with ctx.store.reading() as tx:
        found = await stored.by_id(tx, credential.account_id, credential.id)
    assert found
    return found.last_used_at


async def test_a_use_is_written_in_the_background(ctx: context.Context, account_id: str, clock: Clock) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")
    _, secret = await api_keys.create(
        ctx, account_id, credential_id=credential.id, name="key", scopes=frozenset({callers.Permission.SEND})
    )
    for field in (basic(credential.username, password), bearer(secret)):
        await who_is(ctx, field)
    assert await used_at(ctx, credential) is None
    await contexts.concrete(ctx.access_cache, access_cache.AccessCache).close()
    assert await used_at(ctx, credential) == clock.now
    (key,) = await api_keys.of_account(ctx, account_id)
    assert key.last_used_at == clock.now


async def test_a_use_is_written_by_itself_after_a_moment(
    ctx: context.Context, account_id: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_used, "FLUSH_DELAY_SECONDS", 0)
    credential, _ = await credentials.create(ctx, account_id, "main")
    ctx.access_cache.last_used.note((last_used.CREDENTIAL, credential.id), now=clock.now)
    async with asyncio.timeout(60):
        while await used_at(ctx, credential) is None:
            await asyncio.sleep(0.01)


async def test_closing_does_not_wait_for_the_next_write(
    ctx: context.Context, account_id: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_used, "FLUSH_DELAY_SECONDS", 3600)
    credential, _ = await credentials.create(ctx, account_id, "main")
    noted = last_used.LastUsedRecorder(ctx.store)
    noted.note((last_used.CREDENTIAL, credential.id), now=clock.now)
    async with asyncio.timeout(60):
        await noted.close()
    assert await used_at(ctx, credential) == clock.now


async def test_uses_of_a_second_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    async def wait_for(what: Coroutine[object, object, object], seconds: float) -> None:
        asked.append(seconds)
        what.close()
        raise TimeoutError

    monkeypatch.setattr(asyncio, "wait_for", wait_for)
    noted = last_used.LastUsedRecorder(RefusingStore())
    noted.note((last_used.CREDENTIAL, "cred_1"), now=0)
    await noted.close()
    assert asked == [1.0]


async def test_a_busy_secret_is_written_once_a_minute_and_when_the_clock_was_set_back(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    credential, _ = await credentials.create(ctx, account_id, "main")

    async def use(seconds: float) -> float:
        now = clock.now + int(seconds * SECOND)
        ctx.access_cache.last_used.note((last_used.CREDENTIAL, credential.id), now=now)
        await ctx.access_cache.last_used.flush()
        return ((await used_at(ctx, credential) or 0) - clock.now) / SECOND

    assert [await use(seconds) for seconds in (0, 1, 59.9, 60, -3600)] == [0, 0, 0, 60, -3600]


async def test_more_uses_than_one_transaction_takes_are_all_written(
    ctx: context.Context, account_id: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_used, "MAX_BATCH_ROWS", 2)
    made = [(await credentials.create(ctx, account_id, f"number {number}"))[0] for number in range(5)]
    for credential in made:
        ctx.access_cache.last_used.note((last_used.CREDENTIAL, credential.id), now=clock.now)
    await ctx.access_cache.last_used.flush()
    assert [await used_at(ctx, credential) for credential in made] == [clock.now] * 5


async def test_what_is_remembered_is_bounded(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_used, "MAX_NOTED", 10)
    for number in range(100):
        ctx.access_cache.last_used.note((last_used.CREDENTIAL, str(number)), now=SECOND)
    recorder = contexts.concrete(ctx.access_cache.last_used, last_used.LastUsedRecorder)
    assert len(recorder._noted_at) <= 10
    assert len(recorder._waiting) <= 10


async def test_a_store_that_refuses_loses_the_note_and_nothing_else(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    credential, _ = await credentials.create(ctx, account_id, "main")
    refusing = RefusingStore()
    noted = last_used.LastUsedRecorder(refusing)
    noted.note((last_used.CREDENTIAL, credential.id), now=clock.now)
    await noted.close()
    assert refusing.asked == 1
    assert await used_at(ctx, credential) is None
