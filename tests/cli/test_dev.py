"""`postroad dev` from end to end: started as a developer starts it, used as its own words say, stopped in order."""

import email
import itertools
import json
import re
import shlex
import signal
import smtplib
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli import cli_runner
from tests.cli.cli_runner import Service

MAIL = {"from": "shop@example.com", "to": "jo@example.net", "subject": "Hello", "text": "It works."}
KEYS = {"base_url", "smtp", "api_key", "login", "domain", "template", "sink", "inbound"}


def start(folder: Path, *words: str, environment: dict[str, str] | None = None) -> Service:
    return Service(
        "dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0", *words, folder=folder, environment=environment
    )


def handover(service: Service, folder: Path) -> dict[str, Any]:
    """What `dev.json` says, as soon as it is there."""
    file = folder / ".postroad" / "dev.json"
    text = service.wait_for(lambda: file.read_text() if file.exists() else None, what="dev.json")
    dev_info: dict[str, Any] = json.loads(text)
    return dev_info


def send(dev_info: dict[str, Any], *, key: str = "one", **authentication: Any) -> httpx.Response:
    fields = {"Idempotency-Key": key, **authentication.pop("headers", {})}
    return httpx.post(f"{dev_info['base_url']}/emails", json=MAIL, headers=fields, **authentication)


def send_to(running: "Running", *recipients: str) -> str:
    """The id of a new message to these recipients."""
    answer = httpx.post(
        f"{running.dev_info['base_url']}/emails",
        json={**MAIL, "to": list(recipients)},
        headers={"Idempotency-Key": " ".join(recipients)},
        auth=running.smtp,
    )
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def credential(dev_info: dict[str, Any]) -> tuple[str, str]:
    return dev_info["smtp"]["username"], dev_info["smtp"]["password"]


def log_in(dev_info: dict[str, Any]) -> str:
    answer = httpx.post(f"{dev_info['base_url']}/v1/auth/login", json=dev_info["login"])
    assert answer.status_code == 200, answer.text
    return str(answer.json()["token"])


@dataclass(frozen=True, slots=True)
class Running:
    """A service that some tests share: they send, but change nothing for each other."""

    folder: Path
    dev_info: dict[str, Any]
    printed: str
    service: Service

    @property
    def smtp(self) -> tuple[str, str]:
        return credential(self.dev_info)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("dev")
    with start(folder) as service:
        dev_info = handover(service, folder)
        last = "Saved in .postroad/dev.json.\n"
        printed = service.wait_for(
            lambda: text if last in (text := service.printed.read_text()) else None, what="the last line"
        )
        yield Running(folder, dev_info, printed.removesuffix(last), service)
        assert service.stop()[0] == 0


def test_a_developer_sends_with_each_scheme_and_reads_the_status(running: Running) -> None:
    dev_info = running.dev_info
    assert dev_info.keys() == KEYS
    assert httpx.get(f"{dev_info['base_url']}/readyz").status_code == 200
    token = {"Authorization": f"Bearer {log_in(dev_info)}"}
    api_key = {"Authorization": f"Bearer {dev_info['api_key']}"}
    sent = [
        send(dev_info, key="by password", auth=running.smtp),
        send(dev_info, key="by key", headers=api_key),
        send(dev_info, key="by token", headers=token),
    ]
    assert [answer.status_code for answer in sent] == [202, 202, 202], [answer.text for answer in sent]
    for answer in sent:
        address = f"{dev_info['base_url']}/emails/{answer.json()['id']}"
        by_headers = [httpx.get(address, headers=headers) for headers in (api_key, token)]
        for shown in (httpx.get(address, auth=running.smtp), *by_headers):
            assert (shown.status_code, shown.json()["id"]) == (200, answer.json()["id"])


def test_the_printed_command_can_be_pasted_and_works(running: Running) -> None:
    dev_info = running.dev_info
    assert f"{dev_info['base_url']}/docs" in running.printed
    assert f"{dev_info['login']['email']}  {dev_info['login']['password']}" in running.printed
    (command,) = re.findall(r"^  (curl \S+/emails \\\n(?:.*\\\n)*.*)$", running.printed, re.MULTILINE)
    _, url, *words = shlex.split(command.replace("\\\n", ""))
    options = list(zip(words[::2], words[1::2], strict=True))
    headers = dict(value.split(": ", 1) for name, value in options if name == "-H")
    (body,) = [value for name, value in options if name == "-d"]
    answer = httpx.post(url, headers=headers, content=body)
    assert answer.status_code == 202, answer.text
    assert answer.json()["subject"] == "Welcome, you"


def test_a_command_of_a_page_names_the_data_folder(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    page = httpx.get(f"{running.dev_info['base_url']}/login").text
    (words,) = re.findall(r"<pre><code>(.+)</code></pre>", page)
    assert words == "postroad user link you@example.com --data .postroad"
    monkeypatch.chdir(running.folder)
    _, *rest = words.replace("you@example.com", running.dev_info["login"]["email"]).split()
    assert cli_runner.run(*rest).exit_code == 0


def test_delivered_mail_is_read_back_from_the_inbox_with_the_printed_command(running: Running) -> None:
    send_to(running, "reader@inbox.test")
    (command,) = re.findall(r"^  (curl .*/v1/inbox)$", running.printed, re.MULTILINE)
    _, _, header, url = shlex.split(command)
    headers = dict([header.split(": ", 1)])

    def received() -> list[dict[str, Any]] | None:
        answer = httpx.get(url, params={"to": "Reader@inbox.test"}, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["messages"] or None

    (message,) = running.service.wait_for(received, what="the delivery")
    assert (message["envelope_to"], message["subject"]) == (["reader@inbox.test"], MAIL["subject"])
    raw = httpx.get(f"{url}/{message['id']}/raw", auth=running.smtp)
    assert raw.headers["content-type"] == "message/rfc822"
    assert email.message_from_bytes(raw.content)["Subject"] == MAIL["subject"]


def test_the_simulator_listens_where_dev_json_says(running: Running) -> None:
    sink = running.dev_info["sink"]
    with smtplib.SMTP(sink["host"], sink["port"]) as client:
        client.sendmail("a@example.org", ["by-hand@sink.test"], b"Subject: x\r\n\r\nHello\r\n")
    found = httpx.get(f"{running.dev_info['base_url']}/v1/inbox", params={"to": "by-hand@sink.test"}, auth=running.smtp)
    assert [message["envelope_from"] for message in found.json()["messages"]] == ["a@example.org"]


def test_mail_goes_in_over_smtp_where_dev_json_says(running: Running) -> None:
    smtp = running.dev_info["smtp"]
    assert list(smtp) == ["host", "port", "username", "password"]
    head = b"From: shop@example.com\r\nTo: over-smtp@listener.test\r\nBcc: hidden@listener.test\r\nSubject: By hand\r\n"
    with smtplib.SMTP(smtp["host"], smtp["port"]) as client:
        client.login(*running.smtp)
        client.sendmail(
            "shop@example.com", ["over-smtp@listener.test", "hidden@listener.test"], head + b"\r\nHello\r\n"
        )
    inbox = f"{running.dev_info['base_url']}/v1/inbox"

    def received() -> list[dict[str, Any]] | None:
        found = httpx.get(inbox, params={"to": "hidden@listener.test"}, auth=running.smtp).json()["messages"]
        return found or None

    (message,) = running.service.wait_for(received, what="the delivery")
    raw = httpx.get(f"{inbox}/{message['id']}/raw", auth=running.smtp).content
    assert email.message_from_bytes(raw)["Subject"] == "By hand"
    assert b"hidden@listener.test" not in raw


def test_mail_to_nobody_is_refused_where_dev_json_says_that_mail_comes_in(running: Running) -> None:
    inbound = running.dev_info["inbound"]
    assert list(running.dev_info)[-2:] == ["sink", "inbound"]
    assert list(inbound) == ["host", "port"]
    with smtplib.SMTP(inbound["host"], inbound["port"]) as client:
        client.ehlo()
        assert client.mail("ada@example.net")[0] == 250
        assert client.rcpt("nobody@elsewhere.example")[0] == 550


def test_the_printed_command_sends_to_the_route_and_the_api_has_the_mail(running: Running) -> None:
    (command,) = re.findall(r"^  (curl \S+ --mail-from you@.*\\\n.*)$", running.printed, re.MULTILINE)
    words = dict(itertools.pairwise(shlex.split(command.replace("\\\n", " "))))
    inbound = running.dev_info["inbound"]
    assert words["curl"] == f"smtp://{inbound['host']}:{inbound['port']}"
    with smtplib.SMTP(inbound["host"], inbound["port"]) as client:
        client.sendmail(words["--mail-from"], [words["--mail-rcpt"]], b"From: you@example.net\r\n\r\nIt arrived.\r\n")
    headers = {"Authorization": f"Bearer {running.dev_info['api_key']}"}
    (mail,) = httpx.get(f"{running.dev_info['base_url']}/v1/inbound", headers=headers).json()["messages"]
    assert (mail["to"], mail["from"]) == ("support@in.example.com", "you@example.net")
    shown = httpx.get(f"{running.dev_info['base_url']}/v1/inbound/{mail['id']}", headers=headers).json()["message"]
    assert (shown["route"], shown["text"]) == ("*@in.example.com", "It arrived.")


def test_what_it_writes_is_private(running: Running) -> None:
    folder = running.folder / ".postroad"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_folder_in_use_is_refused_with_a_sentence(running: Running) -> None:
    result = cli_runner.run(
        "dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0", "--data", str(running.folder / ".postroad")
    )
    assert cli_runner.sentence(result).endswith(
        ".postroad is in use by another 'postroad dev'; stop it, or choose another folder with --data"
    )
    assert httpx.get(f"{running.dev_info['base_url']}/healthz").status_code == 200


def test_a_second_start_finds_data_and_credentials_again_even_after_a_kill(tmp_path: Path) -> None:
    with start(tmp_path) as service:
        first = handover(service, tmp_path)
        smtp = credential(first)
        sent = send(first, auth=smtp)
        service.process.send_signal(signal.SIGKILL)
        service.process.wait(cli_runner.TIMEOUT_SECONDS)
    with start(tmp_path) as service:
        service.wait_for(lambda: "started" in service.errors.read_text() or None, what="the start")
        second = handover(service, tmp_path)
        # The ports are free ones, and others at each start.
        assert credential(second) == smtp
        ports = ("base_url", "smtp", "sink", "inbound")
        assert {**second, **{name: first[name] for name in ports}} == first
        replayed = send(second, auth=smtp)
        assert (replayed.status_code, replayed.content) == (202, sent.content)
        assert replayed.headers["Idempotent-Replayed"] == "true"


def test_operator_commands_work_beside_the_running_service_and_are_felt_by_it(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / ".postroad"), "--json")
    with start(tmp_path) as service:
        dev_info = handover(service, tmp_path)
        account = json.loads(cli_runner.run("account", "show", "Demo", *data).stdout)["account"]
        assert account["credits"]["available"] == 10_000
        token = json.loads(cli_runner.run("token", *data).stdout)["token"]
        shown = httpx.get(f"{dev_info['base_url']}/v1/account", headers={"Authorization": f"Bearer {token}"})
        assert shown.json()["account"]["id"] == account["id"]
        cli_runner.run("account", "suspend", "Demo", "--reason", "unpaid", *data)
        smtp = credential(dev_info)

        def refusal() -> httpx.Response | None:
            answer = send(dev_info, key="suspended", auth=smtp)
            return answer if answer.status_code != 202 else None

        assert service.wait_for(refusal, what="the refusal").json()["code"] == "account_suspended"
        assert cli_runner.run("verify", *data).exit_code == 0


def test_a_port_in_use_is_refused_with_a_sentence_and_costs_no_credentials(tmp_path: Path) -> None:
    with start(tmp_path) as service:
        first = handover(service, tmp_path)
        service.stop()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with Service("dev", "--smtp", "127.0.0.1:0", "--http", address, folder=tmp_path) as service:
            code, stdout, stderr = service.finish()
    assert (code, stdout) == (1, "")
    assert (
        stderr == f"Error: cannot listen on {address}: the address is in use by another process; "
        "choose another address with --http\n"
    )
    assert json.loads((tmp_path / ".postroad" / "dev.json").read_text()) == first


@pytest.mark.parametrize("option", ["--sink", "--smtp", "--inbound"])
def test_another_port_that_is_in_use_is_refused_with_its_option(tmp_path: Path, option: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        chosen = {"--http": "127.0.0.1:0", "--smtp": "127.0.0.1:0", option: address}
        with Service("dev", *(word for pair in chosen.items() for word in pair), folder=tmp_path) as service:
            code, stdout, stderr = service.finish()
    assert (code, stdout) == (1, "")
    # The listener starts after other roles, which log that they are disabled.
    reason = "the address is in use by another process"
    sentence = f"Error: cannot listen on {address}: {reason}; choose another address with {option}"
    assert stderr.splitlines()[-1] == sentence


def test_an_upstream_of_the_developers_own_is_used_instead_of_the_simulator(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        other.settimeout(cli_runner.TIMEOUT_SECONDS)
        port = str(other.getsockname()[1])
        chosen = {"POSTROAD_UPSTREAMS__OWN__HOST": "127.0.0.1", "POSTROAD_UPSTREAMS__OWN__PORT": port}
        with start(tmp_path, environment=chosen) as service:
            dev_info = handover(service, tmp_path)
            send(dev_info, auth=credential(dev_info))
            connection, _ = other.accept()
            connection.close()


@pytest.mark.parametrize("option", ["--http", "--smtp", "--inbound", "--sink"])
@pytest.mark.parametrize("address", ["8025", "127.0.0.1", "127.0.0.1:x", ":0", "[::1:0"])
def test_an_address_that_is_none_is_a_wrong_use_before_anything_is_made(
    tmp_path: Path, address: str, option: str
) -> None:
    result = cli_runner.run("dev", "--data", str(tmp_path / "data"), option, address)
    assert result.exit_code == 2
    assert f"'{option}'" in result.stderr
    assert not (tmp_path / "data").exists()
