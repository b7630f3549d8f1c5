"""MTA-STS policies survive a restart: whoever blocks DNS and HTTPS then cannot take a domain's TLS away."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroad import errors
from postroad.delivery import tls_choice
from postroad.model.delivery import tls_policy
from postroad.network.http import https_get
from postroad.protocol.dns import mta_sts
from postroad.storage.engine import open_store, store
from tests import dns_server, https_server
from tests.contexts import database_url
from tests.delivery import engine_harness, parts, router_harness

__all__ = ["database_url"]

Txt = str | dns_server.Fault | None
NOW = 1_800_000_000_000_000
SECOND = 1_000_000
POLICY = b"version: STSv1\nmode: enforce\nmx: mx1.example.org\nmax_age: 604800"
VERIFIED = tls_policy.TlsPolicy(tls_policy.Mode.VERIFIED, names=("mx1.example.org",), reason="MTA-STS of example.org")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[store.Store]:
    opened = await open_store.open_current(database_url, migrate=True)
    yield opened
    await opened.close()


class Process:
    """A host that starts, with an empty memory; `now` is the wall clock of all hosts."""

    def __init__(self, database: store.Store, server: https_server.HttpsServer) -> None:
        self.database = database
        self.server = server
        self.now = NOW

    @contextlib.asynccontextmanager
    async def starting(
        self, txt: Txt = "v=STSv1; id=1;", **options: Any
    ) -> AsyncIterator[router_harness.RouterHarness]:
        zones: dns_server.Zones = {**router_harness.TWO_HOSTS}
        if txt is not None:
            zones["_mta-sts.example.org"] = txt if isinstance(txt, dns_server.Fault) else {"TXT": [f'"{txt}"']}
        async with router_harness.running(
            zones,
            https=https_get.Client(self.server.context, port=self.server.port),
            stored_policies=tls_choice.StoredPolicies(self.database, lambda: self.now),
            mta_sts=True,
            allow_private=[*router_harness.PUBLIC, "127.0.0.1"],
            **options,
        ) as harness:
            yield harness

    async def hosts(self, txt: Txt = "v=STSv1; id=1;") -> dict[str, tls_policy.TlsPolicy]:
        """The route of a process that has just started."""
        async with self.starting(txt) as harness:
            return {host.name: host.tls for host in (await harness.route("example.org")).hosts}


@pytest.fixture
async def process(database: store.Store) -> AsyncIterator[Process]:
    async with https_server.running("mta-sts.example.org") as server:
        server.answer = https_server.response(POLICY)
        yield Process(database, server)


@pytest.mark.parametrize("txt", [None, dns_server.Fault.SERVFAIL, "v=STSv1; id=2;"])
async def test_a_policy_applies_after_a_restart_although_dns_and_https_are_blocked(process: Process, txt: Txt) -> None:
    assert await process.hosts() == {"mx1.example.org": VERIFIED}
    process.server.answer = b""
    process.now += 604_799 * SECOND
    assert await process.hosts(txt) == {"mx1.example.org": VERIFIED}
    process.now += SECOND
    assert set((await process.hosts(txt)).values()) == {tls_policy.OPPORTUNISTIC}


async def test_a_policy_that_another_host_fetched_is_not_fetched_again_on_the_same_day(process: Process) -> None:
    await process.hosts()
    process.now += 86_399 * SECOND
    assert await process.hosts() == {"mx1.example.org": VERIFIED}
    assert len(process.server.requests) == 1
    process.now += SECOND
    assert await process.hosts() == {"mx1.example.org": VERIFIED}
    assert len(process.server.requests) == 2


async def test_a_policy_that_ends_the_enforcement_replaces_the_stored_one(process: Process) -> None:
    await process.hosts()
    process.now += SECOND
    process.server.answer = https_server.response(b"version: STSv1\nmode: none\nmax_age: 86400")
    await process.hosts("v=STSv1; id=2;")
    assert set((await process.hosts(None)).values()) == {tls_policy.OPPORTUNISTIC}


async def test_an_engine_that_has_just_started_knows_the_policy_and_sends_nothing_in_plain_text(
    database_url: str, database: store.Store
) -> None:
    policy = mta_sts.Policy(mta_sts.Mode.ENFORCE, (engine_harness.HOST,), 604_800)
    await tls_choice.StoredPolicies(database, lambda: NOW).save("example.net", policy, policy_id="1")
    async with engine_harness.delivering_to(database_url, mta_sts=True) as (peer, harness):
        seen = await harness.settle(await harness.send())
    assert (seen.attempt.stage, seen.attempt.reason) == ("starttls", "tls_failed")
    assert peer.transactions == []


class Reads:
    """A store that counts its reads, and that may be unavailable."""

    def __init__(self, database: store.Store) -> None:
        self.dialect = database.dialect
        self.database = database
        self.count = 0
        self.is_available = True

    def reading(self) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        self.count += 1
        if not self.is_available:
            raise errors.ServiceUnavailable("the database is away")
        return self.database.reading()

    def transaction(self) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        if not self.is_available:
            raise errors.ServiceUnavailable("the database is away")
        return self.database.transaction()

    def leasing(self) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        return self.database.leasing()

    def looking_up(self) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        return self.database.looking_up()

    def scanning(self, party: str = "", /) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        return self.database.scanning(party)

    async def close(self) -> None:
        await self.database.close()


@pytest.mark.parametrize("txt", [None, "v=STSv1; id=1;"])
async def test_the_store_is_read_once_and_not_for_every_lookup(process: Process, txt: Txt) -> None:
    process.database = reads = Reads(process.database)
    async with process.starting(txt) as harness:
        for _ in range(10):
            harness.now[0] += 300
            await harness.route("example.org")
    assert reads.count == 1


async def test_mail_waits_when_nobody_can_say_whether_a_policy_is_stored(process: Process) -> None:
    process.database = reads = Reads(process.database)
    reads.is_available = False
    async with process.starting(None) as harness:
        with pytest.raises(errors.ServiceUnavailable):
            await harness.route("example.org")
        reads.is_available = True
        assert len((await harness.route("example.org")).hosts) == 2


async def test_a_policy_that_could_not_be_stored_applies_and_the_log_says_so(process: Process) -> None:
    process.database = reads = Reads(process.database)
    log, heard = parts.logger()
    async with process.starting(log=log) as harness:
        # The read is answered, the write is not.
        await harness.router._policies._cached.get_or_fetch("example.org", harness.router._policies._load)  # type: ignore[union-attr]
        reads.is_available = False
        assert [host.tls for host in (await harness.route("example.org")).hosts] == [VERIFIED]
    assert heard == [
        {
            "event": "mta_sts_policy_not_stored",
            "log_level": "warning",
            "domain": "example.org",
            "error": "the database is away",
        }
    ]
