"""The memory of a process: what it caches of access, which failures and uses it counts, and when it asks the store."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from postroad import context, errors
from postroad.model.people import callers, login_rules
from postroad.model.units import times
from postroad.services.people import access_cache, api_keys, credentials
from postroad.storage.engine import open_store, store
from postroad.storage.people import credentials as stored
from tests import contexts
from tests.contexts import SECOND, Clock
from tests.postgres_server import PostgresServer
from tests.services.people.test_schemes import basic, bearer, who_is
from tests.storage import samples

NOW = 1_000_000 * SECOND


class WatchedStore:
    """A real store that counts the questions, and can hold their answers back."""

    def __init__(self, real: store.Store) -> None:
        self._real = real
        self.dialect = real.dialect
        self.questions = 0
        self.answers = asyncio.Event()
        self.answers.set()

    @contextlib.asynccontextmanager
    async def looking_up(self) -> AsyncIterator[store.Transaction]:
        self.questions += 1
        async with self._real.looking_up() as tx:
            yield tx
            await self.answers.wait()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the real store's
        return getattr(self._real, name)


@pytest.fixture
def watched(ctx: context.Context) -> WatchedStore:
    return WatchedStore(ctx.store)


@pytest.fixture
def remembered(watched: WatchedStore) -> access_cache.AccessCache:
    return access_cache.AccessCache(watched)


async def change(database: store.Store) -> None:
    async with database.transaction() as tx:
        await stored.bump_access_version(tx)


async def test_the_store_is_asked_twice_a_second_at_most_and_facts_stay_while_nothing_changes(
    remembered: access_cache.AccessCache, watched: WatchedStore
) -> None:
    (await remembered.refresh(NOW))["fact"] = 1
    for hundredths in range(100):
        assert await remembered.refresh(NOW + hundredths * SECOND // 100) == {"fact": 1}
    assert watched.questions == 2


@pytest.mark.parametrize("later", [SECOND // 2, -3600 * SECOND], ids=["half a second later", "set back"])
async def test_a_change_by_another_process_is_felt_within_half_a_second_by_any_clock(
    ctx: context.Context, remembered: access_cache.AccessCache, later: int
) -> None:
    (await remembered.refresh(NOW))["fact"] = 1
    await change(ctx.store)
    assert await remembered.refresh(NOW + later) == {}


async def test_after_a_change_of_its_own_a_process_asks_at_once(
    remembered: access_cache.AccessCache, watched: WatchedStore
) -> None:
    (await remembered.refresh(NOW))["fact"] = 1
    remembered.invalidate()
    assert await remembered.refresh(NOW) == {}
    assert watched.questions == 2


async def test_what_was_looked_up_before_a_change_is_not_remembered_after_it(
    ctx: context.Context, remembered: access_cache.AccessCache
) -> None:
    before = await remembered.refresh(NOW)
    await change(ctx.store)
    await remembered.refresh(NOW + SECOND)
    before["fact"] = "as it was before the change"
    assert await remembered.refresh(NOW + SECOND) == {}


async def test_many_callers_share_one_question_which_outlives_whoever_asked_it(
    remembered: access_cache.AccessCache, watched: WatchedStore
) -> None:
    watched.answers.clear()
    first, *waiting = [asyncio.ensure_future(remembered.refresh(NOW)) for _ in range(50)]
    await asyncio.sleep(0)
    first.cancel()
    watched.answers.set()
    facts = await asyncio.gather(*waiting)
    assert watched.questions == 1
    assert all(found is facts[0] for found in facts)


async def test_an_answer_from_before_a_change_of_its_own_is_not_believed(
    ctx: context.Context, remembered: access_cache.AccessCache, watched: WatchedStore
) -> None:
    watched.answers.clear()
    early = asyncio.ensure_future(remembered.refresh(NOW))
    while watched.questions == 0:
        await asyncio.sleep(0)
    await change(ctx.store)
    remembered.invalidate()
    late = asyncio.ensure_future(remembered.refresh(NOW))
    watched.answers.set()
    await early
    (await late)["fact"] = 1
    assert watched.questions == 2
    await change(ctx.store)
    assert await remembered.refresh(NOW + SECOND) == {}


async def test_an_answer_that_came_late_brings_no_old_facts(
    remembered: access_cache.AccessCache, watched: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (await remembered.refresh(NOW))["fact"] = 1
    monkeypatch.setattr(access_cache, "FRESH_MICROSECONDS", 0)  # any answer is late now
    assert await remembered.refresh(NOW + SECOND) == {}


async def test_facts_are_bounded(remembered: access_cache.AccessCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_cache, "MAX_ENTRIES", 10)
    (await remembered.refresh(NOW)).update(dict.fromkeys(range(11)))
    assert await remembered.refresh(NOW) == {}


def test_a_digest_is_the_same_within_a_process_and_worthless_outside(ctx: context.Context) -> None:
    mine, other = access_cache.AccessCache(ctx.store), access_cache.AccessCache(ctx.store)
    assert mine.digest("secret") == mine.digest("secret") != other.digest("secret")
    assert mine.digest("half \ud800 pair") != mine.digest("secret")


async def test_the_end_waits_for_a_question_under_way(
    remembered: access_cache.AccessCache, watched: WatchedStore
) -> None:
    watched.answers.clear()
    asker = asyncio.ensure_future(remembered.refresh(NOW))
    await asyncio.sleep(0)
    asker.cancel()
    end = asyncio.ensure_future(remembered.close())
    await asyncio.sleep(0)
    assert not end.done()
    watched.answers.set()
    await end


async def test_without_the_store_nothing_is_trusted_and_when_it_is_back_all_is_well() -> None:
    with PostgresServer() as own_server:
        database = await open_store.open_current(own_server.create_database(), migrate=True)
        remembered = access_cache.AccessCache(database)
        (await remembered.refresh(NOW))["fact"] = 1
        own_server.stop()
        assert await remembered.refresh(NOW + SECOND // 2 - 1) == {"fact": 1}
        for _ in range(2):
            with pytest.raises(errors.ServiceUnavailable):
                await remembered.refresh(NOW + SECOND)
        own_server.start()
        assert await remembered.refresh(NOW + SECOND) == {"fact": 1}
        await database.close()


# Failures: counted for all processes, in parallel as in a row, forgiven, and kept in memory when the store is away.

HERE = "192.0.2.1"
ELSEWHERE = "198.51.100.2"


def of_user(name: str, address: str = HERE) -> login_rules.Counters:
    return login_rules.of_user(name, address, is_known=False)


@pytest.fixture
def counted(ctx: context.Context) -> access_cache.LoginFailures:
    return contexts.concrete(ctx.access_cache.login_failures, access_cache.LoginFailures)


@pytest.fixture
def elsewhere(other_process: context.Context) -> access_cache.LoginFailures:
    return contexts.concrete(other_process.access_cache.login_failures, access_cache.LoginFailures)


async def fail(
    counted: access_cache.LoginFailures, times: int, *, address: str = HERE, name: str = "jo", now: int = NOW
) -> None:
    for _ in range(times):
        assert await counted.attempt(of_user(name, address), now=now) == 0


async def test_a_name_is_slowed_here_after_its_free_failures_and_costs_the_store_nothing_then(
    ctx: context.Context, counted: access_cache.LoginFailures, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fail(counted, 5)
    await fail(counted, 1, address=ELSEWHERE)
    await fail(counted, 1, name="al")

    def refuse() -> None:
        raise AssertionError("a transaction")

    with monkeypatch.context() as without:
        without.setattr(ctx.store, "transaction", refuse)
        assert await counted.attempt(of_user("jo"), now=NOW) == 60
        assert await counted.attempt(of_user("jo"), now=NOW + 59 * times.SECOND + 1) == 1
    assert await counted.attempt(of_user("jo"), now=NOW + 60 * times.SECOND) == 0


async def test_parallel_attempts_in_two_processes_are_throttled_like_sequential_ones(
    counted: access_cache.LoginFailures, elsewhere: access_cache.LoginFailures
) -> None:
    attempts = (process.attempt(of_user("jo"), now=NOW) for process in (counted, elsewhere) for _ in range(20))
    assert sorted(await asyncio.gather(*attempts)) == [0] * 5 + [60] * 35
    for process in (counted, elsewhere):
        assert await process.attempt(of_user("jo"), now=NOW) == 60


async def test_a_success_forgives_the_name_here_and_leaves_the_others_their_failures(
    counted: access_cache.LoginFailures, elsewhere: access_cache.LoginFailures
) -> None:
    for number in range(98):
        await fail(counted, 1, name=f"name{number}")
    await fail(counted, 2)
    await counted.forgive(of_user("jo"), now=NOW)
    await fail(elsewhere, 1)
    assert await elsewhere.attempt(of_user("al"), now=NOW) == 3


async def test_an_attempt_that_was_never_checked_is_taken_off(counted: access_cache.LoginFailures) -> None:
    await fail(counted, 5)
    await counted.withdraw(of_user("jo"), now=NOW)
    await fail(counted, 1)
    await counted.withdraw(of_user("nobody", ELSEWHERE), now=NOW)
    await fail(counted, 5, address=ELSEWHERE, name="nobody")


async def test_while_the_store_cannot_be_written_this_process_counts_alone(
    ctx: context.Context, counted: access_cache.LoginFailures, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise errors.ServiceUnavailable("the disk is full")

    monkeypatch.setattr(ctx.store, "transaction", refuse)
    attempts = (counted.attempt(of_user("jo"), now=NOW) for _ in range(20))
    assert sorted(await asyncio.gather(*attempts)) == [0] * 5 + [60] * 15


async def test_no_name_is_stored_and_forgotten_counters_go(
    ctx: context.Context, counted: access_cache.LoginFailures
) -> None:
    await fail(counted, 1, name="my password, by mistake")
    samples.teach(ctx.store, counters="SELECT counter FROM login_failures")
    assert [len(row[0]) for row in await samples.scan(ctx.store, "test.counters")] == [16] * 4
    await fail(counted, 1, address="2001:db8::1", name="al", now=NOW + times.HOUR)
    assert await samples.count(ctx.store, "login_failures") == 5


async def test_the_counters_in_memory_are_bounded_and_the_busy_ones_stay(ctx: context.Context) -> None:
    counted = access_cache.LoginFailures(ctx.store, max_counters=10)
    for number in range(5):
        await fail(counted, 1, address=f"198.51.100.{number}", name="someone")
        await fail(counted, 1)
    assert len(counted._clear_at) == 10
    assert (
        counted._in_memory(access_cache._FailureItem(access_cache._FailureChange.ATTEMPT, of_user("jo"), NOW)).wait > 0
    )
    await counted.close()


# Last uses: written in the background, once a minute for each secret, and never in anybody's way.


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


async def last_used(ctx: context.Context, credential: stored.Credential) -> int | None:
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
    assert await last_used(ctx, credential) is None
    await contexts.concrete(ctx.access_cache, access_cache.AccessCache).close()
    assert await last_used(ctx, credential) == clock.now
    (key,) = await api_keys.of_account(ctx, account_id)
    assert key.last_used_at == clock.now


async def test_a_use_is_written_by_itself_after_a_moment(
    ctx: context.Context, account_id: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_cache, "FLUSH_DELAY_SECONDS", 0)
    credential, _ = await credentials.create(ctx, account_id, "main")
    ctx.access_cache.last_used.note((access_cache.USED_CREDENTIAL, credential.id), now=clock.now)
    async with asyncio.timeout(60):
        while await last_used(ctx, credential) is None:
            await asyncio.sleep(0.01)


async def test_closing_does_not_wait_for_the_next_write(
    ctx: context.Context, account_id: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_cache, "FLUSH_DELAY_SECONDS", 3600)
    credential, _ = await credentials.create(ctx, account_id, "main")
    noted = access_cache.LastUsedRecorder(ctx.store)
    noted.note((access_cache.USED_CREDENTIAL, credential.id), now=clock.now)
    async with asyncio.timeout(60):
        await noted.close()
    assert await last_used(ctx, credential) == clock.now


async def test_uses_of_a_second_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    async def wait_for(what: Coroutine[object, object, object], seconds: float) -> None:
        asked.append(seconds)
        what.close()
        raise TimeoutError

    monkeypatch.setattr(asyncio, "wait_for", wait_for)
    noted = access_cache.LastUsedRecorder(RefusingStore())
    noted.note((access_cache.USED_CREDENTIAL, "cred_1"), now=0)
    await noted.close()
    assert asked == [1.0]


async def test_a_busy_secret_is_written_once_a_minute_and_when_the_clock_was_set_back(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    credential, _ = await credentials.create(ctx, account_id, "main")

    async def use(seconds: float) -> float:
        now = clock.now + int(seconds * SECOND)
        ctx.access_cache.last_used.note((access_cache.USED_CREDENTIAL, credential.id), now=now)
        await ctx.access_cache.last_used.flush()
        return ((await last_used(ctx, credential) or 0) - clock.now) / SECOND

    assert [await use(seconds) for seconds in (0, 1, 59.9, 60, -3600)] == [0, 0, 0, 60, -3600]


async def test_more_uses_than_one_transaction_takes_are_all_written(
    ctx: context.Context, account_id: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_cache, "MAX_BATCH_ROWS", 2)
    made = [(await credentials.create(ctx, account_id, f"number {number}"))[0] for number in range(5)]
    for credential in made:
        ctx.access_cache.last_used.note((access_cache.USED_CREDENTIAL, credential.id), now=clock.now)
    await ctx.access_cache.last_used.flush()
    assert [await last_used(ctx, credential) for credential in made] == [clock.now] * 5


async def test_what_is_remembered_is_bounded(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_cache, "MAX_NOTED", 10)
    for number in range(100):
        ctx.access_cache.last_used.note((access_cache.USED_CREDENTIAL, str(number)), now=SECOND)
    recorder = contexts.concrete(ctx.access_cache.last_used, access_cache.LastUsedRecorder)
    assert len(recorder._noted_at) <= 10
    assert len(recorder._waiting) <= 10


async def test_a_store_that_refuses_loses_the_note_and_nothing_else(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    credential, _ = await credentials.create(ctx, account_id, "main")
    refusing = RefusingStore()
    noted = access_cache.LastUsedRecorder(refusing)
    noted.note((access_cache.USED_CREDENTIAL, credential.id), now=clock.now)
    await noted.close()
    assert refusing.asked == 1
    assert await last_used(ctx, credential) is None
