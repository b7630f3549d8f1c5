"""Sends with random keys, bodies and credits, alone and at once, through suspensions, changes, long waits and crashes.

The service has to agree with a simple model (`model.py`) in every answer and in everything that it keeps. After a crash
at any moment of the accepting transaction, a message exists and its key replays the answer, or nothing exists.
"""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import hypothesis
import pytest
from hypothesis import stateful
from hypothesis import strategies as st

from tests.reliability import crashable_stores, model, profile, system_under_test
from tests.reliability.faults import Moment

SETTINGS = hypothesis.settings(
    max_examples=8 if profile.IS_LONG else 5,
    stateful_step_count=30,
    phases=[hypothesis.Phase.generate, *([hypothesis.Phase.shrink] if profile.SHRINK else [])],
    database=None,
    derandomize=False,  # the seed decides
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)

# The same address in several spellings is one recipient.
PEOPLE = (
    "ada@example.net",
    "Ada@Example.NET",
    "bob@example.net",
    "eve@example.org",
    "EVE@example.org",
    "zoe@example.com",
)
DAY = 24 * 60 * 60
# Seconds; a key lives until just before the end of its day.
WAITS = (0.001, 1, 30, DAY / 2, DAY - 0.000001, DAY, DAY + 1)

# What a run has to have met, or it proves little.
MUST_SEE = frozenset({model.ACCEPTED, model.REPLAYED, model.CONFLICT, model.IN_PROGRESS, model.FORBIDDEN})
REFUSALS = frozenset({model.SUSPENDED, model.RATE_LIMITED, model.FORBIDDEN, model.POOR, model.CONFLICT})

addresses = st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=5).map(tuple)
places = st.integers(0, system_under_test.PROCESSES - 1)
names = st.sampled_from(sorted(system_under_test.DOMAINS))
moments = st.sampled_from(list(Moment))
statements = st.integers(0, 9)
shares = st.sampled_from((0.0, 0.01, 0.3, 0.5, 0.8, 0.99, 1.0))


@st.composite
def new_sends(draw: st.DrawFn) -> model.Send:
    """A request of somebody; now and then from a domain that is not theirs."""
    credential = draw(st.sampled_from(sorted(system_under_test.CREDENTIALS)))
    own = system_under_test.DOMAINS[system_under_test.CREDENTIALS[credential]]
    return model.Send(
        credential,
        key=draw(st.sampled_from(("a", "b", "c", None))),
        domain=draw(st.sampled_from((*own, *own, *own, "three.example"))),
        to=draw(addresses),
        cc=draw(st.sampled_from(((), (), PEOPLE[:1]))),
        bcc=draw(st.sampled_from(((), (), PEOPLE[2:5]))),
        words=draw(st.sampled_from((1, 2, 4000))),
        is_raw=draw(st.booleans()),
    )


class Sends(stateful.RuleBasedStateMachine):
    """What happens, in any order."""

    known = stateful.Bundle("known")
    sends = st.one_of(known, known, new_sends())

    def __init__(self, engine: crashable_stores.Engine, seen: Counter[str]) -> None:
        super().__init__()
        self.system = system_under_test.SystemUnderTest(engine, seen)
        self.runner = asyncio.Runner()
        self.run(self.system.open())

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.is_well = False
        self.runner.run(work)
        self.is_well = True

    def teardown(self) -> None:
        try:
            if self.is_well:  # else the first failure is the one to report
                self.run(self.system.check_books())
        finally:
            self.runner.run(self.system.close())
            self.runner.close()

    @stateful.invariant()
    def the_sums_are_right(self) -> None:
        self.run(self.system.check_sums())

    @stateful.rule(target=known, send=new_sends(), place=places)
    def somebody_sends(self, send: model.Send, place: int) -> model.Send:
        self.run(self.system.send([(place, send)]))
        return send

    @stateful.rule(send=known, place=places)
    def somebody_sends_again(self, send: model.Send, place: int) -> None:
        self.run(self.system.send([(place, send)]))

    @stateful.rule(send=sends, here=st.integers(1, 5), there=st.integers(0, 5))
    def the_same_comes_many_times_at_once(self, send: model.Send, here: int, there: int) -> None:
        self.run(self.system.send([(0, send)] * here + [(1, send)] * there))

    @stateful.rule(requests=st.lists(st.tuples(places, sends), min_size=2, max_size=7))
    def many_come_at_once(self, requests: list[system_under_test.Request]) -> None:
        self.run(self.system.send(requests))

    @stateful.rule(send=sends, place=places, turns=st.integers(0, 12))
    def a_caller_gives_up_and_comes_back(self, send: model.Send, place: int, turns: int) -> None:
        self.run(self.system.give_up(place, send, turns=turns))

    @stateful.rule(place=places)
    def everybody_repeats(self, place: int) -> None:
        self.run(self.system.repeat_everything(place))
        self.run(self.system.check_books())

    @stateful.rule(place=places, name=names, amount=st.integers(1, 20))
    def an_account_gets_credits(self, place: int, name: str, amount: int) -> None:
        self.run(self.system.grant(place, name, amount))

    @stateful.rule(place=places, name=names)
    def an_account_is_suspended_or_resumed(self, place: int, name: str) -> None:
        suspended = self.system.books.accounts[self.system.account_ids[name]].suspended
        self.run(self.system.resume(place, name) if suspended else self.system.suspend(place, name))

    @stateful.rule(place=places, name=names)
    def a_domain_goes_or_comes_back(self, place: int, name: str) -> None:
        domain = system_under_test.DOMAINS[name][0]
        owned = (name, domain) in self.system.domain_ids
        change = self.system.remove_domain if owned else self.system.add_domain
        self.run(change(place, name, domain))

    @stateful.rule(seconds=st.sampled_from(WAITS))
    def time_passes(self, seconds: float) -> None:
        self.system.clock.pass_seconds(seconds)

    @stateful.rule(place=places)
    def what_has_expired_is_swept(self, place: int) -> None:
        self.run(self.system.sweep(place))

    @stateful.rule(
        requests=st.lists(st.tuples(places, sends), min_size=1, max_size=4),
        moment=moments,
        statements=statements,
        share=shares,
    )
    def a_process_dies(
        self, requests: list[system_under_test.Request], moment: Moment, statements: int, share: float
    ) -> None:
        engine, process = self.system.engine, self.system.processes[0]
        fault = engine.death(process, moment, statements=statements, share=share)
        self.run(self.system.send_and_die(self._first_process_takes(requests), fault))
        self.run(self.system.check_books())
        self.run(self.system.repeat_everything(1))

    @stateful.rule(name=names, moment=moments, statements=statements, share=shares)
    def an_operator_dies(self, name: str, moment: Moment, statements: int, share: float) -> None:
        fault = self.system.engine.death(self.system.processes[0], moment, statements=statements, share=share)
        self.run(self.system.grant_and_die(name, 10, fault))

    @stateful.rule(
        requests=st.lists(st.tuples(places, sends), min_size=1, max_size=4),
        moment=st.sampled_from((Moment.BEFORE, Moment.DURING)),
        statements=statements,
        share=shares,
    )
    def the_store_fails(
        self, requests: list[system_under_test.Request], moment: Moment, statements: int, share: float
    ) -> None:
        engine, process = self.system.engine, self.system.processes[0]
        fault = engine.trouble(process, moment, statements=statements, share=share)
        self.run(self.system.send_in_trouble(self._first_process_takes(requests), fault))
        self.run(self.system.check_books())

    def _first_process_takes(self, requests: list[system_under_test.Request]) -> list[system_under_test.Request]:
        """One of them at least, and all of them where one file is everybody's."""
        shared = self.system.engine.dies_as_one
        return [(0 if shared or number == 0 else place, send) for number, (place, send) in enumerate(requests)]


async def test_the_service_and_the_model_know_the_same_answers(
    make_engine: Callable[[], crashable_stores.Engine],
) -> None:
    """A sequence that meets each of them; the random ones below may miss some."""
    system = system_under_test.SystemUnderTest(make_engine(), Counter())
    await system.open()
    first = model.Send("cred_one", "a", "one.example", ("ada@example.net",))
    await system.send([(0, first)] * 3)
    await system.send([(0, dataclasses.replace(first, words=2)), (1, dataclasses.replace(first, is_raw=True))])
    await system.send([(1, dataclasses.replace(first, key="e", is_raw=True))] * 3)
    await system.send([(0, dataclasses.replace(first, key="b", domain="three.example"))])
    await system.suspend(0, "first")
    await system.send([(1, first), (1, dataclasses.replace(first, key="c"))])
    await system.resume(1, "first")
    crowd = tuple(f"person-{number}@example.net" for number in range(system_under_test.FIRST_CREDITS))
    await system.send([(0, dataclasses.replace(first, key="d", to=crowd))])
    for number in range(crashable_stores.BURST + 1):
        await system.send(
            [(0, dataclasses.replace(first, credential="cred_two", key=f"{number}", domain="two.example"))]
        )
    await system.check_books()
    await system.close()
    assert set(system.seen) == REFUSALS | {model.ACCEPTED, model.REPLAYED, model.IN_PROGRESS}


@pytest.mark.parametrize("seed", profile.SEEDS)
def test_the_service_agrees_with_a_simple_model_whatever_happens(
    make_engine: Callable[[], crashable_stores.Engine], seed: int
) -> None:
    seen: Counter[str] = Counter()

    @hypothesis.seed(seed)
    class Story(Sends):
        def __init__(self) -> None:
            super().__init__(make_engine(), seen)

    stateful.run_state_machine_as_test(Story, settings=SETTINGS)
    assert MUST_SEE - set(seen) == set(), seen
