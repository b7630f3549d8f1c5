"""`postroad webhook listen` in a process of its own, as a developer starts it: alone, and beside `postroad dev`."""

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from postroad.model.events import events
from postroad.protocol.signatures import webhook_signature
from tests.cli import cli_runner, server_runner
from tests.cli.cli_runner import Service
from tests.cli.server_runner import Server, server

__all__ = ["server"]
SECRET = "whsec_of_the_tests"
VARIABLE = "POSTROAD_WEBHOOK_SECRET"
PING = events.ping("evt_1", created_at=0)


@dataclass(slots=True)
class Listening:
    """A listener that has started."""

    service: Service
    url: str
    read: int = 0

    @property
    def unread(self) -> str:
        """What it has printed since the last line that was asked for."""
        return self.service.printed.read_text()[self.read :]

    @property
    def said(self) -> str:
        """What it has said beside the events."""
        return self.service.errors.read_text()

    def line(self) -> str:
        """The next line on stdout, which may have to be waited for."""

        def find() -> str | None:
            line, found, _ = self.unread.partition("\n")
            self.read += len(line + found) if found else 0
            return line if found else None

        return self.service.wait_for(find, what="a line")

    def post(self, *, secret: str = SECRET) -> httpx.Response:
        signature = webhook_signature.header([secret], PING, timestamp=int(time.time()))
        return httpx.post(self.url, content=PING, headers={"Service-Signature": signature})


def listening(service: Service) -> Listening:
    def url() -> str | None:
        found = re.search(r"Listening (?:for webhooks )?on (http://\S+/)", service.errors.read_text())
        return found[1] if found else None

    return Listening(service, service.wait_for(url, what="the start"))


def listen(folder: Path, *words: str, environment: dict[str, str] | None = None) -> Service:
    folder.mkdir(exist_ok=True)
    return Service("webhook", "listen", "--port", "0", *words, folder=folder, environment=environment)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_events_are_verified_and_shown_until_a_signal_ends_it_well(tmp_path: Path, number: signal.Signals) -> None:
    with listen(tmp_path, environment={VARIABLE: f"whsec_other, {SECRET}"}) as service:
        listener = listening(service)
        assert listener.post().status_code == 200
        assert re.fullmatch(r"\d\d:\d\d:\d\d  webhook.test     -  -    evt_1  verified", listener.line())
        assert listener.post(secret="whsec_wrong").status_code == 400
        assert "  rejected with 400: the signature " in listener.line()
        assert service.stop(number)[0] == 0
        assert listener.unread == ""
        assert listener.said == f"Listening for webhooks on {listener.url}. Press Ctrl-C to stop.\n"


def test_programs_get_json_lines_and_an_argument_is_a_secret_too(tmp_path: Path) -> None:
    with listen(
        tmp_path, "--json", "--secret", SECRET, "--status", "500", environment={VARIABLE: "whsec_x"}
    ) as service:
        listener = listening(service)
        assert [listener.post().status_code for _ in range(2)] == [500, 500]
        first, second = json.loads(listener.line()), json.loads(listener.line())
        assert (first["verified"], first["duplicate"], second["duplicate"]) == (True, False, True)
        assert first["event"] == json.loads(PING)
        assert service.stop()[0] == 0


def test_without_a_secret_it_says_how_to_give_one(tmp_path: Path) -> None:
    with listen(tmp_path) as service:
        listener = listening(service)
        assert listener.post().status_code == 200
        assert listener.line().endswith("  evt_1  not verified")
        assert f"set {VARIABLE} to the secret of the endpoint, or use --data" in listener.said


def test_it_ends_when_nobody_reads_its_lines_any_more(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with Service("webhook", "listen", "--port", "0", folder=tmp_path, pipe=pipe) as service:
        listener = listening(service)
        os.close(reader)
        listener.post()
        assert service.process.wait(cli_runner.TIMEOUT_SECONDS) == 1
        assert "Traceback" not in listener.said


def test_a_port_in_use_is_refused_with_a_sentence() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = cli_runner.sentence(cli_runner.run("webhook", "listen", "--port", str(port)))
    assert refused == (
        f"cannot listen on 127.0.0.1:{port}: the address is in use by another process; "
        "choose another address with --host and --port"
    )


@pytest.mark.parametrize("host", ["", "a b", "::x", "127.0.0.1:80"])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    assert cli_runner.sentence(cli_runner.run("webhook", "listen", "--port", "0", "--host", host)).startswith(
        "--host: "
    )


def test_a_secret_that_is_none_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = cli_runner.usage_error(cli_runner.run("webhook", "listen", "--secret", "hunter2"))
    assert refused == "not a webhook secret; it must start with whsec_"
    monkeypatch.setenv(VARIABLE, "hunter2")
    assert cli_runner.usage_error(cli_runner.run("webhook", "listen")) == refused


def test_a_secret_and_a_folder_are_not_given_together(tmp_path: Path) -> None:
    result = cli_runner.run("webhook", "listen", "--secret", SECRET, "--data", str(tmp_path))
    assert result.exit_code == 2
    assert "--data and --secret cannot be combined" in result.stderr


def api(server: Server, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = httpx.request(method, f"{server.url}{path}", json=body, headers={"Authorization": f"Bearer {server.key}"})
    assert answer.is_success, answer.text
    return answer.json() if answer.content else {}


def send(server: Server, recipient: str) -> None:
    words = ("--from", "shop@example.com", "--to", recipient, "--subject", "Hello", "--text", "Hi")
    server_runner.text("send", *words, "--data", str(server.data))


@pytest.fixture
def dev(server: Server) -> Iterator[Server]:
    """A service that these tests share; its account has no webhook when a test begins."""
    yield server
    api(server, "DELETE", "/v1/webhook")


def test_beside_dev_it_shows_signed_events_and_leaves_a_disabled_endpoint(dev: Server, tmp_path: Path) -> None:
    with listen(tmp_path / "listener", "--data", str(dev.data)) as service:
        listener = listening(service)
        send(dev, "ada@example.net")
        assert re.search(r"  email\.delivered  ada@example\.net  250  evt_\w+  verified$", listener.line())
        send(dev, "bounce@example.net")
        assert re.search(r"  email\.bounced    bounce@example\.net  550  evt_\w+  verified$", listener.line())
        assert api(dev, "GET", "/v1/webhook")["webhook"]["url"] == listener.url
        api(dev, "POST", "/v1/webhook/rotate-secret")
        assert api(dev, "POST", "/v1/webhook/ping")["delivery"]["status"] == "succeeded"
        assert listener.line().endswith("  verified")
        assert service.stop(signal.SIGINT)[0] == 0
        assert listener.unread == ""
        assert listener.said.endswith(
            "The webhook of the demo account is disabled; its log is kept. "
            'To use your own URL, save it with "enabled": true, and rotate the secret.\n'
        )
    left = api(dev, "GET", "/v1/webhook")["webhook"]
    assert (left["url"], left["enabled"]) == (listener.url, False)


def test_an_endpoint_that_was_there_is_put_back_as_it_was(dev: Server, tmp_path: Path) -> None:
    before = {"url": "http://127.0.0.1:9/mine", "events": ["email.failed"], "enabled": True}
    api(dev, "PUT", "/v1/webhook", before)
    with listen(tmp_path / "listener", "--data", str(dev.data)) as service:
        listener = listening(service)
        pointed = api(dev, "GET", "/v1/webhook")["webhook"]
        wanted = ["email.delivered", "email.bounced", "email.failed", "email.unsubscribed", "email.received"]
        assert (pointed["url"], pointed["events"]) == (listener.url, wanted)
        assert service.stop(signal.SIGINT)[0] == 0
        assert listener.said.endswith("is restored.\n")
    assert before.items() <= api(dev, "GET", "/v1/webhook")["webhook"].items()


def test_an_endpoint_that_was_changed_meanwhile_is_left_alone(dev: Server, tmp_path: Path) -> None:
    with listen(tmp_path / "listener", "--data", str(dev.data)) as service:
        listener = listening(service)
        api(dev, "PUT", "/v1/webhook", {"url": "http://127.0.0.1:9/changed"})
        assert service.stop(signal.SIGINT)[0] == 0
        assert "was changed by someone else" in listener.said
    assert api(dev, "GET", "/v1/webhook")["webhook"]["enabled"]
