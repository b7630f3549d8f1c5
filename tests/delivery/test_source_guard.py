"""An address that a provider blocks by its replies is paused for that provider, and the operators are told."""

import json

import msgspec
import pytest

from postroad import config, context
from postroad.delivery import recorder
from postroad.mail import notice_kinds
from postroad.services.queue import sources
from postroad.storage.mail import attempts
from postroad.storage.operations import notices
from tests import smtp_peers
from tests.delivery import engine_harness, parts
from tests.delivery.test_sources import BLOCKED, source

GOOGLE = engine_harness.zones_of({"mx.google.com": "127.0.0.1"})


def refusing(address: str) -> smtp_peers.Script:
    """A server that blocks one client."""
    return {"BANNER": lambda client: BLOCKED if client == address else "220 peer.example ESMTP"}


async def paused(ctx: context.Context) -> list[str]:
    """The providers that out1 is paused for."""
    return [one.provider for one in (await sources.find(ctx, "out1")).providers if one.pause]


async def told(ctx: context.Context) -> list[tuple[str, dict[str, str]]]:
    """The notices, and their values."""
    async with ctx.store.reading() as tx:
        found = await notices.unresolved(tx, limit=9)
    return [(one.kind, json.loads(one.content)) for one in found]


async def test_an_address_that_a_provider_blocks_is_paused_for_it_and_others_take_over(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MIN_MESSAGES", 1)
    first, second = engine_harness.loopback_addresses(2)
    ours = [source("out1", first), source("out2", second)]
    async with engine_harness.delivering_to(database_url, refusing(first), sources=ours, zones=GOOGLE) as (_, harness):
        refused = await harness.settle(await harness.send())
        assert (refused.attempts[0].source, refused.attempts[0].reason) == ("out1", "ip_blocked")

        async def is_paused() -> bool:
            return await paused(harness.ctx) == ["google"]

        await parts.until(is_paused)
        view = await sources.find(harness.ctx, "out1")
        google = view.providers[0]
        assert google.pause is not None
        assert google.pause.reason.startswith("Google blocks it: 5.7.1 Service unavailable")
        assert google.pause.until == harness.clock.now + 2 * 3600 * 1_000_000
        assert (view.state, google.counts.blocked) == ("active", 1)
        (notice,) = await told(harness.ctx)
        assert (notice[0], notice[1]["source"], notice[1]["provider"]) == (
            notice_kinds.ADDRESS_BLOCKED,
            "out1",
            "Google",
        )
        for _ in range(3):
            assert (await harness.settle(await harness.send())).attempt.source == "out2"


def attempt(message: int, *, provider_queue: str = "google", is_blocked: bool = True) -> attempts.Attempt:
    """An attempt from out1."""
    verdict, reason, code = ("retry", "ip_blocked", 421) if is_blocked else ("delivered", "delivered", 250)
    where = (provider_queue, "mx", "127.0.0.1", "", "mail", verdict, None, reason, code, "", "later", 0, "out1")
    return attempts.Attempt("acc_1", f"em_{message}", "rcp_1", 1, 5, *where)


@pytest.mark.parametrize(
    "seen, domain, expected",
    [
        ([attempt(number) for number in range(5)], "gmail.com", ["google"]),
        ([attempt(number) for number in range(5)], "{}.example", ["google"]),
        ([attempt(number) for number in range(4)], "gmail.com", []),
        ([attempt(number) for number in range(9)], "hostile.example", []),  # its owner chooses what is refused
        ([attempt(1) for _ in range(9)], "gmail.com", []),  # one message proves nothing
        ([*map(attempt, range(4)), attempt(7, is_blocked=False), *map(attempt, range(4))], "gmail.com", []),
        ([attempt(number, provider_queue="mx.hostile.example") for number in range(9)], "{}.example", []),
        ([attempt(number, provider_queue="upstream:ses") for number in range(9)], "{}.example", []),
    ],
    ids=[
        "five",
        "five domains",
        "four",
        "one domain",
        "one message",
        "accepted in between",
        "anybody's server",
        "upstream",
    ],
)
async def test_only_several_messages_in_a_row_at_a_known_provider_count(
    url: str, seen: list[attempts.Attempt], domain: str, expected: list[str]
) -> None:
    async with parts.opened(url) as made:
        ours = (config.Source(name="out1", address="127.0.0.1"),)
        msgspec.structs.force_setattr(made.ctx.settings, "sources", ours)
        log, _ = parts.logger()
        guard = recorder.SourceGuard(made.ctx, log)
        for number, one in enumerate(seen):
            guard.count(one, f"ada@{domain.format(number)}")
        await guard.close()
        assert await paused(made.ctx) == expected
