"""Every moment of the accepting transaction, one after the other: the process dies there, or the store fails there.

Between any two statements, at any byte of a commit, and after it: a message exists and its key replays the answer, or
nothing exists. `test_state_machine.py` meets the same moments in stories that nobody would think of.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from tests.reliability import engines, machine, model
from tests.reliability.faults import Moment

# More statements than the accepting transaction has: the last ones come before its commit.
STATEMENTS = range(11)
SHARES = tuple(number / 10 for number in range(11))
# Longer than what a page of a file has left: it needs room that a full disk has not.
WORDS = 4000


@pytest.fixture
async def world(make_engine: Callable[[], engines.Engine]) -> AsyncIterator[machine.World]:
    world = machine.World(make_engine(), Counter())
    await world.open()
    await world.grant(0, "first", 1000)
    yield world
    await world.close()


async def two(world: machine.World, number: int) -> list[machine.Request]:
    """Two requests with keys of their own that will go down in one transaction: the process knows their domain."""
    await world.send([(0, model.Send("cred_one", None, "one.example", ("zoe@example.net",)))])
    return [
        (0, model.Send("cred_one", f"{number}-a", "one.example", ("ada@example.net", "bob@example.net"), words=WORDS)),
        (0, model.Send("cred_two", f"{number}-b", "one.example", ("ADA@example.net", "ada@example.net"), words=WORDS)),
    ]


async def check(world: machine.World, requests: list[machine.Request]) -> None:
    """The callers come back with the same keys, elsewhere, and everything is in order."""
    await world.send([(1, send) for _, send in requests])
    assert {send.scope for _, send in requests} <= set(world.books.keys)
    await world.repeat_everything(0)
    await world.check_books()
    world.clock.pass_seconds(60)


async def test_a_death_before_the_commit_leaves_nothing(world: machine.World) -> None:
    for count in STATEMENTS:
        requests = await two(world, count)
        before = set(world.books.messages)
        fault = world.engine.death(world.processes[0], Moment.BEFORE, statements=count, share=0)
        await world.send_and_die(requests, fault)
        assert set(world.books.messages) == before
        await check(world, requests)
    assert world.seen["death before the commit, nothing"] > 1


async def test_a_death_during_the_commit_leaves_all_of_it_or_nothing(world: machine.World) -> None:
    for number, share in enumerate(SHARES):
        requests = await two(world, number)
        fault = world.engine.death(world.processes[0], Moment.DURING, statements=0, share=share)
        await world.send_and_die(requests, fault)
        await check(world, requests)
    seen = world.seen["death during the commit, all"] + world.seen["death during the commit, nothing"]
    assert seen == len(SHARES)


async def test_a_death_after_the_commit_leaves_answers_to_replay(world: machine.World) -> None:
    requests = await two(world, 0)
    before = set(world.books.messages)
    fault = world.engine.death(world.processes[0], Moment.AFTER, statements=0, share=0)
    await world.send_and_die(requests, fault)
    made = set(world.books.messages) - before
    assert len(made) == 2
    await check(world, requests)
    assert set(world.books.messages) == before | made
    assert world.seen["death after the commit, all"] == 1


async def test_a_store_that_fails_before_the_commit_keeps_nothing_and_works_again(world: machine.World) -> None:
    for count in STATEMENTS:
        requests = await two(world, count)
        fault = world.engine.trouble(world.processes[0], Moment.BEFORE, statements=count, share=0)
        await world.send_in_trouble(requests, fault)
        await check(world, requests)
    assert world.seen[model.AWAY] > 2


async def test_a_store_that_fails_during_the_commit_keeps_all_of_it_or_nothing(world: machine.World) -> None:
    for number, share in enumerate(SHARES):
        requests = await two(world, number)
        fault = world.engine.trouble(world.processes[0], Moment.DURING, statements=0, share=share)
        await world.send_in_trouble(requests, fault)
        await check(world, requests)
    seen = world.seen["trouble during the commit, all"] + world.seen["trouble during the commit, nothing"]
    assert seen == len(SHARES)


@pytest.mark.parametrize("moment", list(Moment))
async def test_a_grant_is_there_with_its_entry_or_not_at_all(world: machine.World, moment: Moment) -> None:
    for count in range(4):
        fault = world.engine.death(world.processes[0], moment, statements=count, share=count / 3)
        await world.grant_and_die("first", 10, fault)
        await world.check_books()
