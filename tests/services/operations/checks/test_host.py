"""Settings, the clock, open files and roles: one broken set-up each, and what is said about it."""

import os
import resource
from pathlib import Path

import pytest

from postroad import context
from postroad.services.operations.checks import host
from tests.services.operations.checks import setups

SECOND = 1_000_000
UNSAFE = (
    "delivery.allow_private: 0.0.0.0/0 allows every address, including this host and its network; list only networks "
    "that need it"
)


async def test_an_unsafe_setting_is_a_warning() -> None:
    assert await setups.told("settings", setups.given()) == [("ok", "no setting is unsafe", "")]
    seen = setups.given(None, {"delivery": {"allow_private": ["0.0.0.0/0"]}})
    assert await setups.told("settings", seen) == [
        (
            "warning",
            UNSAFE,
            "",
        )
    ]


SYNCHRONIZED = ("ok", "the clock is synchronized", "")
UNSYNCHRONIZED = ("warning", "the clock is not synchronized", "run an NTP client such as chrony on this host")


@pytest.mark.parametrize("is_synchronized, expected", [(True, SYNCHRONIZED), (False, UNSYNCHRONIZED)])
async def test_a_clock_that_nobody_sets_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, *, is_synchronized: bool, expected: tuple[str, str, str]
) -> None:
    monkeypatch.setattr(host, "kernel_synchronizes", lambda: is_synchronized)
    assert await setups.told("clock", setups.given()) == [expected]


async def test_where_the_kernel_may_not_be_asked_systemd_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under the unit, whose `ProtectClock` refuses it."""
    monkeypatch.setattr(host, "kernel_synchronizes", lambda: None)
    monkeypatch.setattr(host, "TIMESYNC", tmp_path / "timesync")
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "timedatectl"
    skipped = ("skipped", "this system does not say whether its clock is synchronized", "")
    assert await setups.told("clock", setups.given()) == [skipped]
    for answer, expected in (
        ("echo yes", SYNCHRONIZED),
        ("echo no", UNSYNCHRONIZED),
        ("echo 'Failed to connect to bus' >&2; exit 1", skipped),
    ):
        program.write_text(f"#!/bin/sh\n[ \"$*\" = 'show --property=NTPSynchronized --value' ] && {answer}\n")
        program.chmod(0o755)
        assert await setups.told("clock", setups.given()) == [expected]


async def test_without_systemd_the_file_of_timesyncd_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "kernel_synchronizes", lambda: None)
    monkeypatch.setattr(host, "TIMESYNC", tmp_path)
    monkeypatch.setenv("PATH", "")
    file = tmp_path / "synchronized"
    assert await setups.told("clock", setups.given()) == [UNSYNCHRONIZED]
    file.touch()
    now = setups.NOW // SECOND
    for seconds, expected in ((60, SYNCHRONIZED), (2 * 86_400, UNSYNCHRONIZED)):
        os.utime(file, (now - seconds, now - seconds))
        assert await setups.told("clock", setups.given()) == [expected]


@pytest.mark.parametrize("seconds, state", [(-30, "warning"), (30, "warning"), (-7200, "error"), (7200, "error")])
async def test_a_clock_that_differs_from_that_of_the_database_is_reported(
    ctx: context.Context, seconds: int, state: str
) -> None:
    seen = setups.given(store=ctx.store, clock=context.system_clock() + seconds * SECOND)
    ((told, found, advice),) = await setups.told("clock", seen)
    assert (told, advice) == (state, "synchronize both hosts with NTP, for example with chrony")
    assert found.startswith("the clock differs from that of the database by ")


async def test_a_limit_of_open_files_below_the_connections_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {7: (1024, 4096), 8: (1024, 1024), os.getpid(): (1024, resource.RLIM_INFINITY)}

    def prlimit(process_id: int, _which: int) -> tuple[int, int]:
        return limits[process_id]

    monkeypatch.setattr(resource, "prlimit", prlimit)
    running = [setups.process(), setups.process("mx1:8"), setups.process("mx2:9")]
    assert await setups.told("open_files", setups.given(store=setups.STORE, running=running)) == [
        (
            "warning",
            "a process may open 1024 files, and 5062 are needed while all connections are in use",
            "raise the limit, with LimitNOFILE in the systemd unit or 'ulimit -n', or allow fewer connections",
        )
    ]
    assert await setups.told("open_files", setups.given()) == [
        ("ok", "a process needs up to 5062 open files and may open any number", "")
    ]


LISTENING = {"inbound": {"listen": "127.0.0.1:25"}}


@pytest.mark.parametrize(
    "processes, overrides, expected",
    [
        ([], {}, [("warning", "the service is not running", "start 'postroad serve'")]),
        (
            [("mx1:7", ("api", "maintenance", "webhooks"))],
            {},
            [("error", "no process runs the role delivery", "start one with 'postroad serve --role delivery'")],
        ),
        (
            [("mx1:7", ("api", "maintenance", "webhooks")), ("mx2:8", ("delivery",))],
            LISTENING,
            [("error", "no process runs the role inbound", "start one with 'postroad serve --role inbound'")],
        ),
        (
            [("mx1:7", ("api", "maintenance", "webhooks")), ("mx2:8", ("delivery",))],
            {},
            [("ok", "all roles are running, on mx1, mx2", "")],
        ),
    ],
)
async def test_a_role_that_no_process_runs_is_an_error(
    processes: list[tuple[str, tuple[str, ...]]],
    overrides: setups.Overrides,
    expected: list[tuple[str, str, str]],
) -> None:
    running = [setups.process(name, roles=roles) for name, roles in processes]
    assert await setups.told("roles", setups.given(None, overrides, store=setups.STORE, running=running)) == expected
