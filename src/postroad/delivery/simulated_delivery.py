"""Delivery of test mail: the simulator decides the attempt, and the result is recorded like that of a real one.

A recipient is test mail by its scheduled queue, and never becomes a job. Nothing here can look up a name, open a
connection or read the message, so test mail cannot leave the host, whatever its address and the settings are. How often
a recipient was deferred is in the queue, so any host can make the next attempt.
"""

import asyncio
import collections
import itertools
import random
from collections.abc import Sequence
from typing import Final

from postroad import context
from postroad.delivery import attempter, recorder
from postroad.model.delivery import fair_shares
from postroad.model.mail import simulated_outcomes
from postroad.storage.mail import queue
from postroad.telemetry import logs

# Attempts under way, which accounts share fairly. All but the slow ones are over at once; the rest waits in the store.
MAX_UNDER_WAY: Final = 500
# Claimed in a step, and so recorded together: nothing waits for test mail, and live mail should not wait for it.
MAX_CLAIMS_PER_STEP: Final = 64
# On average over some steps: about a tenth of the time of a process.
MAX_PER_SECOND: Final = 500


class SimulatedDelivery:
    """Makes the attempts of test mail."""

    def __init__(self, ctx: context.Context, results: recorder.Recorder, log: logs.Logger) -> None:
        self._ctx = ctx
        self._recorder = results
        self._log = log
        self._under_way = fair_shares.FairShares(MAX_UNDER_WAY)
        self._rest_until = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    def claim_requests(self, queue_keys: Sequence[str]) -> list[queue.ClaimRequest]:
        """What to claim of scheduled queues of test mail: a part for each that has room, or nothing during a rest."""
        if asyncio.get_running_loop().time() < self._rest_until:
            return []
        # Accounts share them, however many simulations, and so scheduled queues, each of them asks for.
        by_account: dict[fair_shares.Party, list[str]] = collections.defaultdict(list)
        for queue_key in queue_keys:
            by_account[_party(queue_key)].append(queue_key)
        count = min(len(by_account), MAX_CLAIMS_PER_STEP)
        wanted: list[queue.ClaimRequest] = []
        for party in random.sample(list(by_account), count):
            room = min(self._under_way.room(party), MAX_CLAIMS_PER_STEP // count)
            keys = by_account[party]
            chosen = keys if len(keys) <= room else random.sample(keys, room)
            wanted += [queue.ClaimRequest(queue_key, room // len(chosen)) for queue_key in chosen]
        return wanted

    def begin(self, claims: Sequence[queue.Claimed]) -> None:
        """Begin the attempts; those that take equally long are recorded together."""
        loop = asyncio.get_running_loop()
        self._rest_until = max(loop.time(), self._rest_until) + len(claims) / MAX_PER_SECOND
        loop.call_at(self._rest_until, self._ctx.mail_wakeup.set)
        attempts = [(claim, _simulate(claim)) for claim in claims]
        attempts.sort(key=_seconds)
        for seconds, together in itertools.groupby(attempts, key=_seconds):
            self._begin(list(together), seconds)

    async def finish(self) -> None:
        """Wait for the attempts under way, a few seconds at most."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, attempts: Sequence[recorder.Simulated], seconds: float) -> None:
        self._under_way.add((_party(attempts[0][0].queue_key),), len(attempts))
        task = asyncio.get_running_loop().create_task(self._record(attempts, seconds))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _record(self, attempts: Sequence[recorder.Simulated], seconds: float) -> None:
        started_at = self._ctx.clock()
        try:
            await asyncio.sleep(seconds)
            await self._recorder.record_simulated(attempts, started_at=started_at)
        except Exception:  # noqa: BLE001 - logged; the recipients are deferred
            self._log.exception("delivery_failed", message_id=attempts[0][0].message_id)
            await self._recorder.record_unroutable([claim for claim, _ in attempts], attempter.INTERNAL_ERROR)
        finally:
            self._under_way.give_back((_party(attempts[0][0].queue_key),), len(attempts))
        self._ctx.mail_wakeup.set()


def _party(queue_key: str) -> fair_shares.Party:
    return fair_shares.Party(queue.account_of(queue_key))


def _simulate(claim: queue.Claimed) -> simulated_outcomes.SimulatedAttempt:
    """By the behaviour that the sender has asked for, or by the address."""
    address = claim.email.removesuffix(queue.UNREACHABLE_SUFFIX)
    played = simulated_outcomes.provider_attempt(claim.simulation or "", attempts=claim.attempt_count)
    return played or simulated_outcomes.attempt(address, attempts=claim.attempt_count)


def _seconds(attempt: recorder.Simulated) -> float:
    return attempt[1].seconds
