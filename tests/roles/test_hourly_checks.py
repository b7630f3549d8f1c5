"""Every process runs the checks by itself, soon after its start, unless the settings say otherwise."""

import asyncio
from collections.abc import Sequence

import pytest

from postroad import config, context
from postroad.roles import background, role, service, supervisor
from tests import contexts, dns_server
from tests.api import app_server

TIMEOUT_SECONDS = 600


def settings(url: str, *, resolvers: Sequence[str] = (), **testing: object) -> config.Settings:
    return contexts.load(
        url,
        delivery={"hostname": "mail.example.org", "resolvers": resolvers},
        doctor={"probe_host": ""},
        testing=testing,
    )


async def test_a_process_exports_what_the_checks_of_its_host_found(
    clean_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "FIRST_CHECKS_SECONDS", 0)
    found: list[context.Context] = []

    async def watch(role_context: role.RoleContext) -> role.Started:
        async def work() -> None:
            checks = role_context.context.metrics.checks
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while not checks.values:
                    await asyncio.sleep(0.01)
            found.append(role_context.context)
            role_context.stopping.set()

        return role.Started(work)

    monkeypatch.setattr(service, "ROLES", {"delivery": watch})
    lines = app_server.CapturedLog()
    async with dns_server.running({"mail.example.org": {"A": ["127.0.0.1"]}}) as dns:
        chosen = settings(clean_sqlite_url, resolvers=[dns.address])
        await service.run(chosen, ["delivery"], log=lines.logger())
    values = found[0].metrics.checks.values
    assert (values["hostname",], values["resolver",], values["reverse_dns",]) == (0, 0, 2)
    # Only a process with the maintenance role speaks for the installation.
    assert ("roles",) not in values
    changed = {line["check"]: line["found"] for line in lines.kept if line["event"] == "check_changed"}
    assert changed["reverse_dns"] == "127.0.0.1 has no reverse DNS"


async def test_the_checks_can_be_turned_off(clean_sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    async def run_all(_context: role.RoleContext, starts: dict[str, object], **_: object) -> None:
        started.append(list(starts))

    monkeypatch.setattr(supervisor, "run_all", run_all)
    for hourly in (True, False):
        chosen = settings(clean_sqlite_url, hourly_checks=hourly)
        await service.run(chosen, ["delivery"], log=app_server.CapturedLog().logger())
    assert started == [["delivery", "wakeups", "heartbeat", "checks"], ["delivery", "wakeups", "heartbeat"]]
