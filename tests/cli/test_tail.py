"""`postroad tail`: what it shows of a real server, when the server is gone, and how it ends."""

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from postroad.cli.framework import server_command
from postroad.cli.server import messages
from postroad.network.http import api_client
from tests.cli import cli_runner, scripted_server, server_runner
from tests.cli.server_runner import Server, home, remote, server

__all__ = ["home", "remote", "server"]
SEND = ("send", "--from", "Shop <shop@example.com>", "--subject", "Hello", "--text", "Hi", "--wait", "600")


def test_new_messages_and_each_result_are_shown_once(remote: Server) -> None:
    before = server_runner.data(*SEND, "--to", "before@example.net")["message"]["id"]
    follower = messages.Follower(server_command.new_client(remote.url, remote.key), mode="live")
    assert [*follower.step()] == []
    sent = server_runner.data(*SEND, "--to", "ada@example.net", "--to", "bounce@example.net")["message"]["id"]
    events = [*follower.step()]
    assert before not in str(events)
    assert events[0] == {
        "event": "accepted",
        "message_id": sent,
        "from": "Shop <shop@example.com>",
        "subject": "Hello",
        "recipient_count": 2,
    }
    assert [(one["event"], one["to"], one["smtp_code"]) for one in events[1:]] == [
        ("delivered", "ada@example.net", 250),
        ("bounced", "bounce@example.net", 550),
    ]
    assert [*follower.step()] == []
    follower._server.close()


def test_a_burst_of_messages_is_shown_up_to_a_limit_and_their_details_a_few_at_a_time() -> None:
    asked: list[str] = []

    class Burst(api_client.Client):
        number = 0

        def get(self, path: str, /, **query: Any) -> dict[str, Any]:
            asked.append(path)
            if path != "/v1/messages":
                return {"status": "queued", "recipients": []}
            self.number += 1
            return {"messages": [{"id": f"em_{self.number}_{one}"} for one in range(100)], "next_cursor": "more"}

    follower = messages.Follower(Burst("http://127.0.0.1:1", "k", user_agent=""), mode="live")
    assert [*follower.step()] == []
    assert len([*follower.step()]) == 500
    assert len(asked) == 1 + 5 + 8


@pytest.fixture
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes the command end as after Ctrl-C, after so many waits."""

    def use(times: int) -> None:
        left = [times]

        def sleep(_seconds: float) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt

        monkeypatch.setattr("postroad.cli.framework.server_command.time.sleep", sleep)

    return use


def test_a_server_that_is_gone_is_asked_again_and_said_to_be_back(
    home: Path, monkeypatch: pytest.MonkeyPatch, without_waiting: Callable[[int], None]
) -> None:
    del home
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
    new = {"messages": [{"id": "em_1", "subject": "\x1b[2J"}]}
    found: Iterator[dict[str, Any] | None] = iter([{"messages": []}, None, None, new, {}, {}])

    def get(_self: object, path: str, **_: Any) -> dict[str, Any]:
        if path != "/v1/messages":
            return {}
        answer = next(found)
        if answer is None:
            raise api_client.ServerError("http://127.0.0.1:1 cannot be reached: Connection refused")
        return answer

    monkeypatch.setattr(api_client.Client, "get", get)
    without_waiting(4)
    result = cli_runner.run("tail", "--url", "http://127.0.0.1:1")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "Server: http://127.0.0.1:1. Press Ctrl-C to stop.",
        "http://127.0.0.1:1 cannot be reached: Connection refused; trying again.",
        "http://127.0.0.1:1 can be reached again.",
    ]
    assert re.fullmatch(r"\d\d:\d\d:\d\d  accepted   em_1  None, None recipients  \\x1b\[2J\n", result.stdout)


def test_a_wrong_key_ends_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
    with scripted_server.answering(b'{"error": "wrong"}', status=401) as refusing:
        assert server_runner.refusal(cli_runner.run("tail", "--url", refusing.url), exit_code=3) == "wrong"
    assert "cannot be reached" in server_runner.refusal(cli_runner.run("tail", "--url", refusing.url), exit_code=4)


def test_a_process_prints_lines_at_once_and_ends_well_with_ctrl_c(server: Server, home: Path) -> None:
    environment = {"POSTROAD_URL": server.url, "POSTROAD_API_KEY": server.key, "XDG_CONFIG_HOME": str(home)}
    with cli_runner.Service("tail", "--json", folder=home, environment=environment) as process:
        # The first request may come after a message: so one is sent until one is shown.
        def shown() -> str | None:
            words = ("send", "--from", "shop@example.com", "--to", "tail@example.net", "--subject", "x", "--text", "x")
            assert cli_runner.run(*words, "--data", str(server.data)).exit_code == 0
            found, end, _ = process.printed.read_text().partition("\n")
            return found if end else None

        first = json.loads(process.wait_for(shown, what="a line"))
        assert (first["event"], first["subject"]) == ("accepted", "x")
        assert process.stop(signal.SIGINT)[0] == 0
        assert process.errors.read_text() == f"Server: {server.url}. Press Ctrl-C to stop.\n"
