"""`postroad webhook listen` with a server: events come over its own connection, once each, and are forwarded signed."""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from postroad.cli.dev import webhook_listen
from postroad.cli.framework import server_command
from postroad.network.http import api_client
from postroad.protocol.signatures import webhook_signature
from tests.cli import cli_runner, scripted_server, server_runner
from tests.cli.server_runner import Server, home, remote, server

__all__ = ["home", "remote", "server"]
SEND = ("send", "--from", "Shop <shop@example.com>", "--subject", "Hello", "--text", "Hi", "--wait", "600")


def webhooks(client: api_client.Client) -> list[Any]:
    found: list[Any] = client.get("/v1/webhooks")["webhooks"]
    return found


def test_events_come_once_each_even_when_a_response_is_lost(remote: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = server_command.new_client(remote.url, remote.key)
    session = webhook_listen.Session(client, wanted=())
    session.open()
    server_runner.text(*SEND, "--to", "ada@example.net")
    server_runner.text(*SEND, "--to", "bounce@example.net")
    lost = api_client.Client.call

    def lose(*arguments: Any, **options: Any) -> dict[str, Any]:
        lost(*arguments, **options)
        monkeypatch.undo()
        raise api_client.ServerError("cut")

    found = [*session.receive()]
    server_runner.text(*SEND, "--to", "eve@example.net", "--data", str(remote.data))
    monkeypatch.setattr(api_client.Client, "call", lose)
    with pytest.raises(api_client.ServerError, match="cut"):
        next(session.receive())
    found += session.receive()
    assert [json.loads(one["body"])["data"]["to"] for one in found] == [
        "ada@example.net",
        "bounce@example.net",
        "eve@example.net",
    ]
    (listener,) = webhooks(client)
    assert (listener["url"], listener["description"]) == ("listen:", "postroad webhook listen")
    session.close()
    assert webhooks(client) == []
    client.close()


def test_a_listener_that_is_gone_is_created_again_with_the_same_secret(
    remote: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = server_command.new_client(remote.url, remote.key)
    session = webhook_listen.Session(client, wanted=["email.delivered"])
    session.open()
    secret = session.secret
    session.close()
    events = webhook_listen._events(session)
    create = session.open

    def open_and_send() -> None:
        create()
        server_runner.text(*SEND, "--to", "again@example.net")

    monkeypatch.setattr(session, "open", open_and_send)
    assert json.loads(next(events)["body"])["data"]["to"] == "again@example.net"
    assert session.secret == secret
    session.close()


def test_a_process_forwards_signed_events_and_removes_its_listener_with_ctrl_c(server: Server, home: Path) -> None:
    environment = {"POSTROAD_URL": server.url, "POSTROAD_API_KEY": server.key, "XDG_CONFIG_HOME": str(home)}
    with scripted_server.answering(b"", status=204) as application:
        words = ("webhook", "listen", "--forward-to", f"{application.url}/hooks?a=1", "--event", "email.delivered")
        with cli_runner.Service(*words, folder=home, environment=environment) as process:
            said = r"signed with the secret (whsec_\S+)\n"
            secret = process.wait_for(lambda: re.search(said, process.errors.read_text()), what="the start")[1]
            send = (*SEND[:-2], "--to", "laptop@example.net", "--data", str(server.data))
            assert cli_runner.run(*send).exit_code == 0
            line = process.wait_for(lambda: re.search(r".*\n", process.printed.read_text()), what="a line")[0]
            assert re.search(r"  email.delivered  laptop@example.net  250  evt_\w+  204\n$", line)
            assert process.stop(signal.SIGINT)[0] == 0
    (request,) = application.asked
    refusal = webhook_signature.why_refused(
        request["Service-Signature"], request["body"].encode(), secret=secret, now=int(time.time()), tolerance=600
    )
    assert (refusal, request["path"], request["Content-Type"]) == (None, "/hooks?a=1", "application/json")
    client = server_command.new_client(server.url, server.key)
    assert webhooks(client) == []
    client.close()


def test_an_application_that_is_not_there_is_shown() -> None:
    with scripted_server.answering(b"") as gone:
        pass
    assert webhook_listen.forward(gone.url, "{}", "whsec_a") == "failed: Connection refused"


def test_a_hostile_event_cannot_control_the_terminal() -> None:
    body = json.dumps({"data": {"to": "\x1b[2J", "smtp_code": "\x07"}})
    event = {"event_type": "\x1b]", "event_id": "\n", "body": body}
    assert webhook_listen.line(event, "204").split()[1:] == [r"\x1b]", r"\x1b[2J", r"\x07", r"\n", "204"]
    assert "\x1b" not in webhook_listen.json_line(event, None)
    for broken in ("", "[1]", "[" * 100_000):
        assert "None" in webhook_listen.line({"body": broken}, None)


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["--forward-to", "localhost:3000"], 2, "--forward-to: must be a URL"),
        (["--forward-to", "http://[::1"], 2, "--forward-to: must be a URL"),
        (["--port", "0", "--forward-to", "http://127.0.0.1:1"], 2, "--forward-to and --port cannot be combined"),
        (["--event", "email.nothing"], 1, "events"),
    ],
)
def test_bad_input_is_refused(remote: Server, words: list[str], code: int, said: str) -> None:
    del remote
    result = cli_runner.run("webhook", "listen", *words)
    assert (result.exit_code, said in result.stderr) == (code, True), result.output
