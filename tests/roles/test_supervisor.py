"""Roles: started together, stopped together, and one that fails takes the others down in order."""

import asyncio
import dataclasses
import itertools
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import httpx
import msgspec
import pytest

from postroad import config, context, errors, roles
from postroad.roles import frontend, maintenance, service, supervisor
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import dns_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.operations import cleanup
from postroad.services.operations.notices import sender
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import sessions
from tests import contexts, dns_server
from tests.api import app_server
from tests.storage import samples

TIMEOUT_SECONDS = 600


@pytest.fixture
def settings(tmp_path: Path) -> config.Settings:
    return contexts.load(f"sqlite:///{tmp_path}/postroad.db", http={"listen": "127.0.0.1:0", "drain_seconds": 0})


@pytest.fixture
def lines() -> app_server.CapturedLog:
    return app_server.CapturedLog()


def with_role(monkeypatch: pytest.MonkeyPatch, work: Callable[[roles.RoleContext], Awaitable[None]]) -> Sequence[str]:
    """Put a role of the test's own beside the real ones; gives the names of all."""

    async def start(role_context: roles.RoleContext) -> roles.Started:
        return roles.Started(lambda: work(role_context))

    monkeypatch.setattr(service, "ROLES", {**service.ROLES, "test": start})
    return list(service.ROLES)


async def run(
    settings: config.Settings,
    names: Sequence[str],
    lines: app_server.CapturedLog,
    *,
    prepare: Callable[[context.Context], Awaitable[None]] | None = None,
    announce: Callable[[roles.Addresses], None] | None = None,
    load: supervisor.Load | None = None,
) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await service.run(settings, names, log=lines.logger(), load=load, prepare=prepare, announce=announce)


def events(lines: app_server.CapturedLog) -> list[str]:
    return [line["event"] for line in lines.kept]


async def test_all_roles_share_a_context_and_stop_when_asked(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[context.Context] = []
    announced: list[roles.Addresses] = []
    statuses: list[int] = []

    async def prepare(ctx: context.Context) -> None:
        assert not announced
        prepared.append(ctx)

    async def work(role_context: roles.RoleContext) -> None:
        assert role_context.context is prepared[0]
        async with httpx.AsyncClient(base_url=f"http://{announced[0]['http']}") as client:
            statuses.append((await client.get("/readyz")).status_code)
        role_context.stopping.set()

    await run(settings, with_role(monkeypatch, work), lines, prepare=prepare, announce=announced.append)
    assert statuses == [200]
    assert events(lines)[:2] == ["schema_migrated", "started"]
    assert events(lines)[-1] == "stopped"


@pytest.mark.parametrize("event, problem", [("role_failed", LookupError("out of stock")), ("role_ended", None)])
async def test_a_role_that_fails_or_ends_unasked_stops_the_others_and_is_logged(
    settings: config.Settings,
    lines: app_server.CapturedLog,
    monkeypatch: pytest.MonkeyPatch,
    event: str,
    problem: Exception | None,
) -> None:
    announced: list[roles.Addresses] = []

    async def work(_duty: roles.RoleContext) -> None:
        if problem is not None:
            raise problem

    with pytest.raises(roles.RoleFailed, match="the role test failed"):
        await run(settings, with_role(monkeypatch, work), lines, announce=announced.append)
    (failure,) = [line for line in lines.kept if line["event"] == event]
    assert (failure["level"], failure["role"]) == ("error", "test")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*announced[0]["http"])


async def test_a_role_that_cannot_start_stops_those_that_have(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished: list[bool] = []

    async def work(role_context: roles.RoleContext) -> None:
        await role_context.stopping.wait()
        finished.append(True)

    with_role(monkeypatch, work)
    with socket.create_server(("127.0.0.1", 0)) as other:
        where = f"127.0.0.1:{other.getsockname()[1]}"
        taken = msgspec.structs.replace(settings, http=msgspec.structs.replace(settings.http, listen=where))
        with pytest.raises(roles.StartError, match=f"cannot listen on {where}: the address is in use"):
            await run(taken, ["test", "api"], lines)
    assert finished == [True]


@pytest.mark.parametrize("listen", ["192.0.2.1:0", "nowhere.invalid:0"])
async def test_an_address_that_is_not_ours_is_reported_with_the_reason(
    settings: config.Settings, lines: app_server.CapturedLog, listen: str
) -> None:
    foreign = msgspec.structs.replace(settings, http=msgspec.structs.replace(settings.http, listen=listen))
    with pytest.raises(roles.StartError, match=f"cannot listen on {listen}: \\S+"):
        await run(foreign, ["api"], lines)


async def test_a_signal_asks_to_stop_and_the_handlers_of_before_come_back(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [signal.getsignal(number) for number in supervisor.SIGNALS]

    async def work(role_context: roles.RoleContext) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await role_context.stopping.wait()

    await run(settings, with_role(monkeypatch, work), lines)
    assert [line["signal"] for line in lines.kept if line["event"] == "stopping"] == ["SIGTERM"]
    assert [signal.getsignal(number) for number in supervisor.SIGNALS] == before


async def test_a_signal_is_told_to_load_balancers_before_connections_are_refused(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    announced: list[roles.Addresses] = []
    answers: list[tuple[str, int]] = []

    async def work(role_context: roles.RoleContext) -> None:
        async with httpx.AsyncClient(base_url=f"http://{announced[0]['http']}") as client:
            answers.append(("/readyz", (await client.get("/readyz")).status_code))
        os.kill(os.getpid(), signal.SIGTERM)
        await role_context.draining.wait()
        # Connections of its own: those that are open are not what a load balancer asks with.
        for path in ("/readyz", "/healthz", "/openapi.json"):
            async with httpx.AsyncClient(base_url=f"http://{announced[0]['http']}") as client:
                answers.append((path, (await client.get(path)).status_code))
        assert not role_context.stopping.is_set()
        role_context.stopping.set()

    http = msgspec.structs.replace(settings.http, drain_seconds=3600)
    slow = msgspec.structs.replace(settings, http=http)
    await run(slow, with_role(monkeypatch, work), lines, announce=announced.append)
    assert answers == [("/readyz", 200), ("/readyz", 503), ("/healthz", 200), ("/openapi.json", 200)]


async def test_maintenance_removes_what_has_expired(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "CLEANUP_INTERVAL_SECONDS", 0.01)

    async def prepare(ctx: context.Context) -> None:
        async with ctx.store.transaction() as tx:
            for session_id, expires_at in (("tok_old", ctx.clock() - 1), ("tok_new", ctx.clock() + 10**12)):
                await sessions.insert(tx, samples.session(session_id, expires_at=expires_at))

    async def work(role_context: roles.RoleContext) -> None:
        while await _has_session(role_context.context, "tok_old"):
            await asyncio.sleep(0.01)
        assert await _has_session(role_context.context, "tok_new")
        role_context.stopping.set()

    await run(settings, with_role(monkeypatch, work), lines, prepare=prepare)


async def test_maintenance_lets_accounts_send_again_that_have_cooled_down(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "CLEANUP_INTERVAL_SECONDS", 0.01)
    guard = msgspec.structs.replace(settings.bounce_guard, cooldown_hours=1)
    made: list[str] = []

    async def prepare(ctx: context.Context) -> None:
        account = await accounts.create(ctx, "Shop")
        made.append(account.id)
        two_hours_ago = ctx.clock() - 2 * 3600 * 1_000_000
        async with ctx.store.transaction() as tx:
            by = stored_accounts.BOUNCE_GUARD
            await stored_accounts.suspend(tx, account.id, reason="bounces", by=by, now=two_hours_ago)

    async def work(role_context: roles.RoleContext) -> None:
        while "account_resumed" not in events(lines):
            await asyncio.sleep(0.01)
        assert (await accounts.find(role_context.context, made[0])).status == stored_accounts.ACTIVE
        role_context.stopping.set()

    chosen = msgspec.structs.replace(settings, bounce_guard=guard)
    await run(chosen, with_role(monkeypatch, work), lines, prepare=prepare)
    assert [line["account_id"] for line in lines.kept if line["event"] == "account_resumed"] == made


async def test_maintenance_goes_on_at_once_when_there_is_more_than_one_sweep_has_time_for(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "CLEANUP_AGAIN_SECONDS", 0.01)
    sweep, times = cleanup.sweep, itertools.count()

    async def sweep_a_part(ctx: context.Context) -> cleanup.SweepResult:
        return dataclasses.replace(await sweep(ctx), has_more=next(times) < 2)

    async def work(role_context: roles.RoleContext) -> None:
        while events(lines).count("cleanup_done") < 3:
            await asyncio.sleep(0.01)
        role_context.stopping.set()

    monkeypatch.setattr(cleanup, "sweep", sweep_a_part)
    await run(settings, with_role(monkeypatch, work), lines)


async def _has_session(ctx: context.Context, session_id: str) -> bool:
    async with ctx.store.reading() as tx:
        return await sessions.by_id(tx, session_id) is not None


@pytest.mark.parametrize(
    "problem, event",
    # A database that is slow is no fault of the cleanup: what is left is swept later.
    [(OSError("disk"), "cleanup_failed"), (TimeoutError(), "cleanup_deferred")],
    ids=["OSError", "TimeoutError"],
)
async def test_a_sweep_that_fails_is_logged_and_tried_again(
    settings: config.Settings,
    lines: app_server.CapturedLog,
    monkeypatch: pytest.MonkeyPatch,
    problem: Exception,
    event: str,
) -> None:
    monkeypatch.setattr(maintenance, "CLEANUP_INTERVAL_SECONDS", 0.01)
    sweep = cleanup.sweep
    swept = asyncio.Event()
    outcomes = [problem, None]

    async def fail_once(ctx: context.Context) -> cleanup.SweepResult:
        if outcomes and (outcome := outcomes.pop(0)):
            raise outcome
        swept.set()
        return await sweep(ctx)

    monkeypatch.setattr(cleanup, "sweep", fail_once)

    async def work(role_context: roles.RoleContext) -> None:
        await swept.wait()
        role_context.stopping.set()

    await run(settings, with_role(monkeypatch, work), lines)
    assert [name for name in events(lines) if name in {"cleanup_failed", "cleanup_deferred"}] == [event]


async def test_maintenance_asks_dns_about_domains_and_a_stop_does_not_wait_for_the_answer(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prepare(ctx: context.Context) -> None:
        account = await accounts.create(ctx, "Shop")
        await domains.add(ctx, account.id, "example.com", verified=False)

    async def work(role_context: roles.RoleContext) -> None:
        while ("_dmarc.example.com", "TXT") not in server.questions:
            await asyncio.sleep(0.01)
        role_context.stopping.set()

    with_role(monkeypatch, work)
    async with dns_server.running({}) as server:
        delivery = msgspec.structs.replace(settings.delivery, resolvers=(server.address,), hostname="mail.example.net")
        asking = msgspec.structs.replace(settings, delivery=delivery)
        with server.holding():
            await run(asking, ["maintenance", "test"], lines, prepare=prepare)
    assert events(lines)[-1] == "stopped"
    assert "domain_check_failed" not in events(lines)


async def test_maintenance_tidies_up_while_dns_does_not_answer(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "CLEANUP_INTERVAL_SECONDS", 0.01)
    asked = asyncio.Event()

    async def hang(_ctx: context.Context, *, log: object) -> int:
        asked.set()
        await asyncio.Event().wait()
        return 0

    async def work(role_context: roles.RoleContext) -> None:
        await asked.wait()
        before = events(lines).count("cleanup_done")
        while events(lines).count("cleanup_done") < before + 2:
            await asyncio.sleep(0.01)
        role_context.stopping.set()

    monkeypatch.setattr(dns_checks, "check_due", hang)
    await run(settings, with_role(monkeypatch, work), lines)


@pytest.mark.parametrize("failure", [LookupError(), errors.ServiceUnavailable("away")])
async def test_a_round_that_fails_is_logged_and_stops_nothing(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    how = "failed" if isinstance(failure, LookupError) else "deferred"

    async def fail(_ctx: context.Context, *, log: object) -> int:
        raise failure

    async def work(role_context: roles.RoleContext) -> None:
        while not {f"domain_checks_{how}", f"notices_{how}"} <= set(events(lines)):
            await asyncio.sleep(0.01)
        role_context.stopping.set()

    for module, name in ((dns_checks, "check_due"), (sender, "send_due")):
        monkeypatch.setattr(module, name, fail)
    with_role(monkeypatch, work)
    await run(settings, ["maintenance", "test"], lines)


async def test_maintenance_asks_no_dns_where_that_is_turned_off(
    settings: config.Settings, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(_ctx: context.Context, *, log: object) -> int:
        raise AssertionError("nobody wanted to know")

    async def work(role_context: roles.RoleContext) -> None:
        while "cleanup_done" not in events(lines):
            await asyncio.sleep(0.01)
        role_context.stopping.set()

    monkeypatch.setattr(dns_checks, "check_due", ask)
    with_role(monkeypatch, work)
    silent = msgspec.structs.replace(settings, domains=msgspec.structs.replace(settings.domains, check_hours=0))
    await run(silent, ["maintenance", "test"], lines)
    assert "domain_checks_failed" not in events(lines)


def test_frontends_share_what_would_cost_others_something() -> None:
    settings = config.load(environment={}, overrides={"database": {"connections": 10}})
    shared = [frontend.divide_limits(settings, frontends=frontends) for frontends in (2, 4, 100)]
    assert [one.database.connections for one in shared] == [5, 2, 2]
    assert [one.limits.spool_megabytes for one in shared] == [512, 256, 64]
    assert all(one.testing == settings.testing for one in shared)
