"""Fair at acceptance: whatever an account does to a shared resource, another account is served meanwhile.

The attacks are those of `make fairness` (benchmarks/attacks/table.py) in a short form, from outside and one after the
other, on one service with two frontends. No time is measured. The victim asks after the attacker has asked, and gets
its answer while requests of the attacker still wait for theirs; its mail is delivered, and its endpoint gets the event.
"""

import asyncio
import contextlib
import functools
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from benchmarks.attacks import attacker, outside, scene, table, victim
from tests.delivery import parts

MESSAGES: Final = 500
# Of one batch, so that the simulator is soon done with them.
BATCH_MESSAGES: Final = 5
SETTINGS: Final = {
    "LIMITS__REQUEST_RATE": "1",
    # More than all attacks but the last one need, and less than that one sends.
    "LIMITS__REQUEST_BURST": "500",
    "INBOUND__CONNECTIONS": "20",
    "SUBMISSION__CONNECTIONS": "20",
}


class ShortForm(NamedTuple):
    """How many connections of each stream send so many requests, and how the attacker fares.

    At least `left` of its requests must still wait when the victim has its answer; `refusals` must have come at the
    end.
    """

    connections: int
    requests: int = 1
    left: int = 1
    refusals: frozenset[str] = frozenset()


SHORT: Final = {
    # All of these wait for the store at once: without turns, the victim would be behind them.
    "batch": ShortForm(connections=3, left=18),
    "batch-one-key": ShortForm(connections=8, requests=2, left=8),
    "slow-destinations": ShortForm(connections=1, requests=8),
    "hanging-webhooks": ShortForm(connections=4, requests=20),
    "templates": ShortForm(connections=8),
    "search": ShortForm(connections=4, requests=5),
    "attachments-by-url": ShortForm(connections=8, requests=4, refusals=frozenset({"429"})),
    # Silent, so there is nothing to wait for.
    "connections-inbound": ShortForm(connections=5, requests=0, left=0),
    "connections-submission": ShortForm(connections=10, requests=0, left=0),
    "mail-to-a-route": ShortForm(connections=2, requests=10),
    "big-bodies": ShortForm(connections=1, requests=6),
    "exports": ShortForm(connections=8, requests=20, refusals=frozenset({"429"})),
    "previews": ShortForm(connections=2, requests=2),
    "approvals": ShortForm(connections=8, requests=5, refusals=frozenset({"409"})),
    # The last one: it uses up the rate.
    "flood": ShortForm(connections=10, requests=60, refusals=frozenset({"429"})),
}


class Assault(NamedTuple):
    """Requests under way: how many there are in all, and the answers so far."""

    total: int
    answers: Counter[str]

    @property
    def left(self) -> int:
        """How many still wait for an answer."""
        return max(0, self.total - self.answers.total())  # a silent one that is closed had nothing to wait for


@contextlib.asynccontextmanager
async def assaulting(
    streams: Sequence[attacker.Stream], form: ShortForm, serials: Iterator[int]
) -> AsyncIterator[Assault]:
    """All connections are open, and their first requests on their way; they are cut at the end."""
    total, answers = 0, Counter[str]()
    async with contextlib.AsyncExitStack() as stack:
        for stream in streams:
            for _ in range(min(stream.connections, form.connections)):
                mine = [*itertools.islice(attacker.endless(stream.requests, serials), form.requests)]
                transport, client = await asyncio.get_running_loop().create_connection(
                    functools.partial(attacker.client_of, stream, iter(mine), answers),
                    "127.0.0.1",
                    stream.port,
                    local_addr=(stream.source, 0),
                )
                stack.push_async_callback(client.closed.wait)
                stack.callback(transport.abort)
                total += len(mine)
        yield Assault(total, answers)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same attacks with less in each request, and the settings of the service."""
    monkeypatch.setattr(table, "BATCH_MESSAGES", BATCH_MESSAGES)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(f"POSTROAD_{name}", value)


@pytest.mark.usefixtures("small")
async def test_an_account_is_served_while_another_one_attacks(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    attacks = {attack.name: attack for attack in table.ALL}
    assert attacks.keys() == SHORT.keys()
    serials = itertools.count()
    async with contextlib.AsyncExitStack() as stack:
        around = await stack.enter_async_context(outside.running(tmp_path / "outside"))
        stage = await asyncio.to_thread(scene.prepare, tmp_path / "service", around, messages=MESSAGES)
        running = stage.started()
        await asyncio.to_thread(running.__enter__)
        stack.push_async_callback(asyncio.to_thread, running.__exit__, None, None, None)
        cookies = await asyncio.to_thread(stage.cookies, stage.victim)
        for name, form in SHORT.items():
            customer = victim.Victim(stage, around, cookies=cookies, listener=attacks[name].listener)
            streams = await asyncio.to_thread(attacks[name].streams, stage)
            async with assaulting(streams, form, serials) as assault:
                assert await is_served(customer, around, assault) >= form.left, name
                await parts.until(functools.partial(seen, assault, form.refusals))


async def is_served(customer: victim.Victim, around: outside.Outside, assault: Assault) -> int:
    """A message is accepted and arrives, and a page is shown; how much of the attack was left at the first answer."""
    await parts.until(functools.partial(is_under_way, assault))
    serial = around.new_serial()
    status, left = await customer.send(serial), assault.left
    assert status in victim.WELCOME, (status, assault)
    assert await customer.look() == "200", assault
    if status in victim.ACCEPTED:
        recipient = outside.recipient(serial)
        await parts.until(functools.partial(arrived, recipient, around))
    return left


async def is_under_way(assault: Assault) -> bool:
    """Whether the attacker has its first answer; silent connections get none."""
    return assault.total == 0 or bool(assault.answers)


async def arrived(recipient: str, around: outside.Outside) -> bool:
    """Whether a message is at its mail host, and its event at the endpoint."""
    return recipient in around.mail.arrived and recipient in around.reported


async def seen(assault: Assault, refusals: frozenset[str]) -> bool:
    """Whether the attacker was refused."""
    return refusals <= assault.answers.keys()
