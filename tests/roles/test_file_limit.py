"""The limit of open files is raised, compared with what the settings need, and reported when it is reached."""

import asyncio
import errno
import os
import resource
from typing import Any

import pytest

from postroad import config
from postroad.roles import supervisor
from tests.api import app_server


class Limits:
    """The limits of a process."""

    def __init__(self, soft: int, hard: int) -> None:
        self.now = (soft, hard)

    def get(self, _which: int) -> tuple[int, int]:
        return self.now

    def set(self, _which: int, limits: tuple[int, int]) -> None:
        self.now = limits


def limited(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> Limits:
    limits = Limits(soft, hard)
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    return limits


def test_the_soft_limit_is_raised_to_the_hard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, lines = limited(monkeypatch, 1024, 524_288), app_server.CapturedLog()
    supervisor.raise_limit(config.load(environment={}), log=lines.logger())
    assert (limits.now, lines.kept) == ((524_288, 524_288), [])


def test_a_limit_below_what_the_settings_need_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 1024, 4096)
    lines = app_server.CapturedLog()
    overrides: dict[str, dict[str, object]] = {
        "http": {"connections": 4000},
        "submission": {"listen": "127.0.0.1:587", "auth_without_tls": True, "connections": 30},
        "delivery": {"connections": 20},
        "webhooks": {"connections": 10},
        "database": {"connections": 5},
    }
    supervisor.raise_limit(config.load(environment={}, overrides=overrides), log=lines.logger())
    (line,) = lines.kept
    assert (line["event"], line["level"]) == ("file_limit_low", "warning")
    assert (line["limit"], line["needed"]) == (4096, 4000 + 30 + 20 + 10 + 5 + 256)


def test_no_limit_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 1024, resource.RLIM_INFINITY)
    lines = app_server.CapturedLog()
    supervisor.raise_limit(config.load(environment={}), log=lines.logger())
    assert lines.kept == []


async def test_a_process_without_free_files_says_so_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FILE_CHECK_SECONDS", 0.001)
    lines, real, attempts = app_server.CapturedLog(), os.open, []

    def open_file(*arguments: Any) -> int:
        attempts.append(arguments)
        if len(attempts) > 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(*arguments)

    monkeypatch.setattr(os, "open", open_file)
    async with supervisor.watched_file_limit(lines.logger()), asyncio.timeout(60):
        while not lines.kept:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
    assert [(line["event"], line["level"]) for line in lines.kept] == [("open_files_exhausted", "warning")]
    assert len(attempts) == 4
