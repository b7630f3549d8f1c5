"""`postroad top`: the live state of a real server, as a screen and as JSON lines, and how it ends."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postroad.cli.framework import server_command
from postroad.cli.server import top
from postroad.network.http import api_client
from tests.cli import cli_runner, server_runner
from tests.cli.server_runner import Server, home, server

__all__ = ["home", "server"]


@pytest.fixture
def operated(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, with a key of an operator."""
    del home
    monkeypatch.setenv("POSTROAD_URL", server.url)
    monkeypatch.setenv("POSTROAD_API_KEY", server.key_with("operator"))
    return server


def test_the_state_of_a_server_is_printed_once(operated: Server) -> None:
    printed = server_runner.text("top", "--once")
    assert printed.startswith(f"Postroad {operated.url}  ")
    assert "\nPer second: accepted -, delivered -, deferred -, bounced -, failed -\n" in printed
    for title in ("PROVIDER", "HOST", "google"):
        assert title in printed
    assert "\x1b" not in printed


def test_programs_get_an_object_per_line(operated: Server) -> None:
    state = json.loads(server_runner.text("top", "--once", "--json"))
    assert [one["name"] for one in state["providers"]][:2] == ["google", "microsoft"]
    assert state["processes"][0]["alive"] is True
    assert set(state["rates"]) == {"accepted", "delivered", "deferred", "bounced", "failed"}


def test_a_key_without_the_scope_ends_it(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    monkeypatch.setenv("POSTROAD_API_KEY", server.key)
    said = server_runner.refusal(cli_runner.run("top", "--once", "--url", server.url), exit_code=3)
    assert "does not have the scope 'operator'" in said


def test_a_process_prints_lines_at_once_and_ends_well_with_ctrl_c(server: Server, home: Path) -> None:
    environment = {
        "POSTROAD_URL": server.url,
        "POSTROAD_API_KEY": server.key_with("operator"),
        "XDG_CONFIG_HOME": str(home),
    }
    words = ("top", "--json", "--interval", "0.5")
    with cli_runner.Service(*words, folder=home, environment=environment) as process:

        def shown() -> str | None:
            lines = process.printed.read_text().split("\n")
            return lines[0] if len(lines) > 2 else None

        assert "rates" in json.loads(process.wait_for(shown, what="two lines"))
        assert process.stop(signal.SIGINT)[0] == 0
        assert process.errors.read_text() == f"Server: {server.url}. Press Ctrl-C to stop.\n"


class Scripted(api_client.Client):
    """A server whose numbers a test has set."""

    queue: dict[str, Any]

    def get(self, path: str, /, **_query: object) -> dict[str, Any]:
        if path == "/v1/operator/queue":
            return self.queue
        if path == "/v1/operator/providers":
            host = {"worker": "mail1-7:a", "state": "blocked", "last_error": "time\x1b[2Jout"}
            change = {"paused": True, "reason": "they asked"}
            named: list[dict[str, Any]] = [
                {"name": "google", "state": "open", "hosts": [], "change": None, "last_hours": {"delivered": 9}},
                {"name": "mx.example.net", "state": "blocked", "hosts": [host], "change": None},
                {"name": "yahoo", "state": "paused", "hosts": [], "change": change},
            ]
            return {"providers": named}
        process = {
            "host": "mail1",
            "process_id": 7,
            "roles": ["api"],
            "version": "0.1.0.dev903+g6f63a0bd",
            "alive": False,
        }
        return {"now": "2026-01-01T00:10:00.000000Z", "processes": [process | {"seen_at": "2026-01-01T00:08:00Z"}]}


def numbers(at: str, **counted: int) -> dict[str, Any]:
    return {
        "counted_at": f"2026-01-01T00:{at}Z",
        "recipients": 1_000_000,
        "states": {"ready": 1, "waiting": 999_999, "sending": 0, "scheduled": 0, "held": 0},
        "oldest_at": "2025-12-31T00:00:00Z",
        "domains": [{"domain": f"d{number}.example", "recipients": number} for number in range(50)],
        "accounts": [
            {"account_id": "acc_1", "name": "Young", "recipients": 5, "oldest_at": "2026-01-01T00:09:30Z"},
            {"account_id": "acc_2", "name": None, "recipients": 1, "oldest_at": "2025-12-31T00:00:00Z"},
        ],
        "last_hours": {"accepted": 0, "delivered": 0, "deferred": 0, "bounced": 0, "failed": 0, **counted},
    }


@pytest.fixture
def scripted() -> Scripted:
    return Scripted("http://127.0.0.1:1", "k", user_agent="")


def test_rates_are_the_differences_between_two_counts(scripted: Scripted) -> None:
    reader = top.Reader(scripted)
    scripted.queue = numbers("00:00", accepted=100, delivered=50)
    assert set(reader.read()["rates"].values()) == {None}
    scripted.queue = numbers("00:10", accepted=300, delivered=55)
    expected = {"accepted": 20.0, "delivered": 0.5, "deferred": 0.0, "bounced": 0.0, "failed": 0.0}
    assert reader.read()["rates"] == expected
    # The same count again is no news.
    assert reader.read()["rates"] == expected
    # A new hour begins.
    scripted.queue = numbers("00:20", accepted=10)
    assert set(reader.read()["rates"].values()) == {None}


def test_the_screen_shows_what_is_worst_first_and_obeys_nothing_in_foreign_text(scripted: Scripted) -> None:
    scripted.queue = numbers("00:00")
    shown = top.screen(top.Reader(scripted).read(), "http://127.0.0.1:1", rows=3)
    assert (
        "Queue: 1,000,000 recipients, oldest 1 d\n  ready 1, waiting 999,999, sending 0, scheduled 0, held 0\n" in shown
    )
    lines = shown.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("PROVIDER"))
    assert [line.split()[0] for line in lines[first + 1 : first + 4]] == ["mx.example.net", "yahoo", "google"]
    assert "time\\x1b[2Jout" in lines[first + 1]
    assert lines[first + 2].endswith("by an operator: they asked")
    assert [line.split()[0] for line in lines if line.startswith(("acc_2", "Young"))] == ["acc_2", "Young"]
    assert "2 min (silent)" in shown
    assert "d3.example" not in shown
    assert "\x1b" not in shown


def test_on_a_terminal_the_screen_fits_and_is_drawn_again(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "24")
    scripted.queue = numbers("00:00")
    drawn = top._drawn(top.Reader(scripted).read(), "http://127.0.0.1:1", is_screen=True)
    assert drawn.startswith("\x1b[H\x1b[JPostroad")
    lines = drawn.removeprefix(top.REDRAW).splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 40


def test_a_server_that_is_gone_is_asked_again(home: Path, scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    scripted.queue = numbers("00:00")
    answers: list[Callable[[], dict[str, Any]]] = []
    waits: list[float] = []

    def refuse() -> dict[str, Any]:
        raise api_client.ServerError("gone")

    answers += [lambda: scripted.queue, refuse, refuse, lambda: scripted.queue]

    def get(_self: object, path: str, **query: object) -> dict[str, Any]:
        return answers.pop(0)() if path == "/v1/operator/queue" else scripted.__class__.get(scripted, path, **query)

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if not answers:
            raise KeyboardInterrupt

    monkeypatch.setattr(api_client.Client, "get", get)
    monkeypatch.setattr("postroad.cli.framework.server_command.time.sleep", sleep)
    monkeypatch.setattr(
        server_command, "client", lambda *_: api_client.Client("http://127.0.0.1:1", "k", user_agent="")
    )
    result = cli_runner.run("top")
    assert result.exit_code == 0
    assert waits == [2.0, 4.0, 8.0, 2.0]
    assert result.stderr.splitlines() == ["Server: http://127.0.0.1:1. Press Ctrl-C to stop.", "gone; trying again."]
    assert result.stdout.count("Per second:") == 2
