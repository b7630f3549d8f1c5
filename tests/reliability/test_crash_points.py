"""Every moment of the accepting transaction, one after the other: the process dies there, or the store fails there.

Between any two statements, at any byte of a commit, and after it: a message exists and its key replays the answer, or
nothing exists. `test_state_machine.py` meets the same moments in generated sequences.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from tests.reliability import crashable_stores, faults, model, profile, system_under_test
from tests.reliability.faults import Moment

# More statements than the accepting transaction has: the last ones come before its commit.
STATEMENTS = 11
# Longer than what a page of a file has left: it needs room that a full disk has not.
WORDS = 4000


@pytest.fixture
async def system(
    make_engine: Callable[[], crashable_stores.Engine],
) -> AsyncIterator[system_under_test.SystemUnderTest]:
    system = system_under_test.SystemUnderTest(make_engine(), Counter())
    await system.open()
    await system.grant(0, "first", 1000)
    yield system
    await system.close()


async def two(system: system_under_test.SystemUnderTest, number: int) -> list[system_under_test.Request]:
    """Two requests with keys of their own that will go down in one transaction: the process knows their domain."""
    await system.send([(0, model.Send("cred_one", None, "one.example", ("zoe@example.net",)))])
    return [
        (0, model.Send("cred_one", f"{number}-a", "one.example", ("ada@example.net", "bob@example.net"), words=WORDS)),
        (0, model.Send("cred_two", f"{number}-b", "one.example", ("ADA@example.net", "ada@example.net"), words=WORDS)),
    ]


async def check(system: system_under_test.SystemUnderTest, requests: list[system_under_test.Request]) -> None:
    """The callers repeat the same keys, elsewhere, and everything is consistent."""
    await system.send([(1, send) for _, send in requests])
    assert {send.scope for _, send in requests} <= set(system.books.keys)
    await system.repeat_everything(0)
    await system.check_books()
    system.clock.pass_seconds(60)


async def test_a_death_keeps_all_or_nothing_and_the_key_replays_the_answer(
    system: system_under_test.SystemUnderTest,
) -> None:
    for number, (moment, count, share) in enumerate(faults.deaths(STATEMENTS)):
        requests = await two(system, number)
        before = set(system.books.messages)
        fault = system.engine.death(system.processes[0], moment, statements=count, share=share)
        await system.send_and_die(requests, fault)
        made = len(set(system.books.messages) - before)
        assert made in {Moment.BEFORE: {0}, Moment.DURING: {0, 2}, Moment.AFTER: {2}}[moment]
        await check(system, requests)
    assert system.seen["death before the commit, nothing"] > 1
    assert struck(system, "death during the commit") == len(profile.shares())
    assert system.seen["death after the commit, all"] == 1


async def test_a_store_that_fails_keeps_all_or_nothing_and_works_again(
    system: system_under_test.SystemUnderTest,
) -> None:
    for number, (moment, count, share) in enumerate(faults.failures(STATEMENTS)):
        requests = await two(system, number)
        fault = system.engine.trouble(system.processes[0], moment, statements=count, share=share)
        await system.send_in_trouble(requests, fault)
        await check(system, requests)
    assert system.seen[model.AWAY] > 2
    assert struck(system, "trouble during the commit") == len(profile.shares())


def struck(system: system_under_test.SystemUnderTest, what: str) -> int:
    return system.seen[f"{what}, all"] + system.seen[f"{what}, nothing"]


@pytest.mark.parametrize("moment", list(Moment))
async def test_a_grant_is_there_with_its_entry_or_not_at_all(
    system: system_under_test.SystemUnderTest, moment: Moment
) -> None:
    for count in range(4):
        fault = system.engine.death(system.processes[0], moment, statements=count, share=count / 3)
        await system.grant_and_die("first", 10, fault)
        await system.check_books()
