"""A rate belongs to a credential, not to a process or a listener: real processes, loaded over HTTP and SMTP at once."""

import asyncio
import contextlib
import itertools
import time
from pathlib import Path

import httpx

from tests.reliability import service_process, submission_service

# Slow enough that even a machine that is busy with other tests asks more often.
RATE, BURST = 1, 40
# This takes two seconds in which there is not enough for everybody.
GOAL = BURST + 2 * RATE
MANY_REFUSALS = 50
HOSTS = {"sqlite": 2, "postgres": 3}
# Of what the rate allows: a host may be refused for a moment by what it remembers.
MIN_SHARE = 0.9
BODY = {"from": submission_service.SENDER, "to": service_process.RECIPIENTS, "subject": "Hello", "text": "Hello"}


class RateLoad:
    """Everybody sends with one credential as fast as they can until enough was accepted, and enough refused."""

    def __init__(self, login: tuple[str, str]) -> None:
        self.accepted = self.refused = 0
        self.began = time.monotonic()
        # When the last request set out that was refused.
        self.last_refused = self.began
        self._login = login
        self._numbers = itertools.count()

    async def by_http(self, client: httpx.AsyncClient, base_url: str) -> None:
        while self._goes_on():
            at, key = time.monotonic(), {"Idempotency-Key": f"{next(self._numbers)}"}
            response = await client.post(f"{base_url}/emails", json=BODY, auth=self._login, headers=key)
            assert response.status_code in {202, 429}, response.text
            self._note(at, is_accepted=response.status_code == 202)

    async def by_smtp(self, address: tuple[str, int] | None) -> None:
        session = await submission_service.Session.open(address)
        with contextlib.closing(session):
            assert (await session.log_in(self._login)).code == 235
            while self._goes_on():
                at = time.monotonic()
                reply = await session.send(submission_service.content("Hello"))
                assert reply.code == 250 or (reply.code, reply.text[:19]) == (451, "4.7.1 rate_limited:"), reply
                self._note(at, is_accepted=reply.code == 250)

    def _note(self, at: float, *, is_accepted: bool) -> None:
        if is_accepted:
            self.accepted += 1
        else:
            self.refused += 1
            self.last_refused = max(self.last_refused, at)

    def _goes_on(self) -> bool:
        return self.accepted < GOAL or self.refused < MANY_REFUSALS


async def test_a_rate_holds_for_all_processes_and_both_listeners_together(url: str, tmp_path: Path) -> None:
    limits = {"request_rate": RATE, "request_burst": BURST}
    hosts = range(HOSTS[url.partition(":")[0].removesuffix("ql")])
    async with contextlib.AsyncExitStack() as stack:
        ctx = await stack.enter_async_context(service_process.inside(url))
        account_id, login = await submission_service.open_account(ctx)
        services = await asyncio.gather(
            *(
                stack.enter_async_context(
                    submission_service.running(tmp_path / f"{host}", url, roles=("api", "submission"), limits=limits)
                )
                for host in hosts
            )
        )
        client = await stack.enter_async_context(
            httpx.AsyncClient(timeout=service_process.TIMEOUT_SECONDS, trust_env=False)
        )
        hammering = RateLoad(login)
        async with asyncio.timeout(service_process.TIMEOUT_SECONDS), asyncio.TaskGroup() as group:
            for service in services:
                group.create_task(hammering.by_http(client, service.base_url))
                group.create_task(hammering.by_smtp(service.smtp))
        elapsed = time.monotonic() - hammering.began
        assert hammering.accepted <= BURST + RATE * elapsed + 1
        # Who is refused comes too early. Until then nearly all that the rate allows was accepted, on any machine.
        assert hammering.accepted >= MIN_SHARE * (BURST + RATE * (hammering.last_refused - hammering.began))
        assert await asyncio.gather(*(service.stop() for service in services)) == [0 for _ in hosts]
        assert [service.errors() for service in services] == [[] for _ in hosts]
        assert len(await service_process.stored_messages(ctx, account_id)) == hammering.accepted
