"""Roles: started together, stopped together, and one that fails takes the others down in order."""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import httpx
import pytest

from postroad import config, roles
from postroad.services import context, sweeping
from postroad.storage import users
from tests.api import door

SECRET_KEY = "of the tests: 7Yq0wT4nZs9Lr2Xd5Kf8Hb1Vc6Jm3Pg"
PATIENCE_SECONDS = 60

Start = Callable[[roles.Duty], Awaitable[roles.Started]]


@pytest.fixture
def settings(tmp_path: Path) -> config.Settings:
    overrides = {
        "database": {"url": f"sqlite:///{tmp_path}/postroad.db"},
        "security": {"secret_key": SECRET_KEY},
        "http": {"listen": "127.0.0.1:0"},
    }
    return config.load(environment={}, overrides=overrides)


@pytest.fixture
def lines() -> door.Lines:
    return door.Lines()


def with_role(monkeypatch: pytest.MonkeyPatch, work: Callable[[roles.Duty], Awaitable[None]]) -> Sequence[str]:
    """Put a role of the test's own beside the real ones; gives the names of all."""

    async def start(duty: roles.Duty) -> roles.Started:
        return roles.Started(lambda: work(duty))

    monkeypatch.setattr(roles, "ROLES", {**roles.ROLES, "test": start})
    return list(roles.ROLES)


async def run(
    settings: config.Settings,
    names: Sequence[str],
    lines: door.Lines,
    *,
    prepare: Callable[[context.Context], Awaitable[None]] | None = None,
    announce: Callable[[roles.Addresses], None] | None = None,
) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await roles.run(settings, names, log=lines.logger(), prepare=prepare, announce=announce)


def events(lines: door.Lines) -> list[str]:
    return [line["event"] for line in lines.kept]


async def test_all_roles_share_a_context_and_stop_when_asked(
    settings: config.Settings, lines: door.Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[context.Context] = []
    told: list[roles.Addresses] = []
    statuses: list[int] = []

    async def prepare(ctx: context.Context) -> None:
        assert not told
        prepared.append(ctx)

    async def work(duty: roles.Duty) -> None:
        assert duty.context is prepared[0]
        async with httpx.AsyncClient(base_url=f"http://{told[0]['http']}") as client:
            statuses.append((await client.get("/readyz")).status_code)
        duty.stopping.set()

    await run(settings, with_role(monkeypatch, work), lines, prepare=prepare, announce=told.append)
    assert statuses == [200]
    assert events(lines)[0] == "started"
    assert events(lines)[-1] == "stopped"


async def test_a_role_that_fails_stops_the_others_and_is_logged(
    settings: config.Settings, lines: door.Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[roles.Addresses] = []

    async def work(_duty: roles.Duty) -> None:
        raise LookupError("out of stock")

    with pytest.raises(roles.RoleFailed, match="the role test failed"):
        await run(settings, with_role(monkeypatch, work), lines, announce=told.append)
    (failure,) = [line for line in lines.kept if line["event"] == "role_failed"]
    assert (failure["level"], failure["role"]) == ("error", "test")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*told[0]["http"])


async def test_a_role_that_ends_unasked_counts_as_failed(
    settings: config.Settings, lines: door.Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(_duty: roles.Duty) -> None:
        await asyncio.sleep(0)

    with pytest.raises(roles.RoleFailed, match="the role test failed"):
        await run(settings, with_role(monkeypatch, work), lines)
    assert "role_ended" in events(lines)


async def test_a_role_that_cannot_start_stops_those_that_have(
    settings: config.Settings, lines: door.Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished: list[bool] = []

    async def work(duty: roles.Duty) -> None:
        await duty.stopping.wait()
        finished.append(True)

    with_role(monkeypatch, work)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        where = f"127.0.0.1:{other.getsockname()[1]}"
        taken = config.load(
            environment={},
            overrides={
                "database": {"url": settings.database.url},
                "security": {"secret_key": SECRET_KEY},
                "http": {"listen": where},
            },
        )
        with pytest.raises(roles.StartError, match=f"cannot listen on {where}: another program listens there"):
            await run(taken, ["test", "api"], lines)
    assert finished == [True]


@pytest.mark.parametrize("listen", ["192.0.2.1:0", "nowhere.invalid:0"])
async def test_an_address_that_is_not_ours_is_told_with_the_reason(
    settings: config.Settings, lines: door.Lines, listen: str
) -> None:
    overrides = {"security": {"secret_key": SECRET_KEY}, "database": {"url": settings.database.url}}
    foreign = config.load(environment={}, overrides={**overrides, "http": {"listen": listen}})
    with pytest.raises(roles.StartError, match=f"cannot listen on {listen}: \\S+"):
        await run(foreign, ["api"], lines)


async def test_a_signal_asks_to_stop_and_the_handlers_of_before_come_back(
    settings: config.Settings, lines: door.Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [signal.getsignal(number) for number in roles.SIGNALS]

    async def work(duty: roles.Duty) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await duty.stopping.wait()

    await run(settings, with_role(monkeypatch, work), lines)
    assert [line["signal"] for line in lines.kept if line["event"] == "stopping"] == ["SIGTERM"]
    assert [signal.getsignal(number) for number in roles.SIGNALS] == before


async def test_maintenance_forgets_what_has_expired(
    settings: config.Settings, lines: door.Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles, "SWEEP_EVERY_SECONDS", 0.01)

    async def prepare(ctx: context.Context) -> None:
        async with ctx.store.transaction() as tx:
            await users.revoke_token(tx, "tok_old", account_id="acc_x", expires_at=ctx.clock() - 1)
            await users.revoke_token(tx, "tok_new", account_id="acc_x", expires_at=ctx.clock() + 10**12)

    async def work(duty: roles.Duty) -> None:
        while await _is_revoked(duty.context, "tok_old"):
            await asyncio.sleep(0.01)
        assert await _is_revoked(duty.context, "tok_new")
        duty.stopping.set()

    await run(settings, with_role(monkeypatch, work), lines, prepare=prepare)


async def _is_revoked(ctx: context.Context, token_id: str) -> bool:
    async with ctx.store.reading() as tx:
        return await users.is_token_revoked(tx, token_id)


@pytest.mark.parametrize("problem", [OSError("disk"), TimeoutError()], ids=lambda problem: type(problem).__name__)
async def test_a_sweep_that_fails_is_logged_and_tried_again(
    settings: config.Settings, lines: door.Lines, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    monkeypatch.setattr(roles, "SWEEP_EVERY_SECONDS", 0.01)
    sweep = sweeping.sweep
    swept = asyncio.Event()
    outcomes = [problem, None]

    async def fail_once(ctx: context.Context) -> sweeping.Swept:
        if outcomes and (outcome := outcomes.pop(0)):
            raise outcome
        swept.set()
        return await sweep(ctx)

    monkeypatch.setattr(sweeping, "sweep", fail_once)

    async def work(duty: roles.Duty) -> None:
        await swept.wait()
        duty.stopping.set()

    await run(settings, with_role(monkeypatch, work), lines)
    assert events(lines).count("sweep_failed") == 1


def test_no_path_is_offered_twice_and_every_part_of_the_api_is_there() -> None:
    offered = [(route.method, route.path) for route in roles.ROUTES]
    assert len(offered) == len(set(offered))
    assert {route.tag for route in roles.ROUTES} >= {"Emails", "Account", "Domains", "Templates"}
