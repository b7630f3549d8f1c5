"""`postroad serve`: started with a configuration, stopped by signals, and refused when it could not serve."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from postroad import context
from tests.cli import cli_runner
from tests.cli.both_engines import empty
from tests.cli.cli_runner import Installation, Service

__all__ = ["empty"]


def serving(installation: Installation, *words: str, grace_seconds: int = 20) -> Service:
    text = installation.file.read_text()
    installation.file.write_text(
        f'{text}\n[http]\nlisten = "127.0.0.1:0"\ndrain_seconds = 0\n[shutdown]\ngrace_seconds = {grace_seconds}\n'
    )
    return Service("serve", "--config", str(installation.file), *words, folder=installation.file.parent)


def address(service: Service) -> tuple[str, int]:
    host, _, port = service.line("started")["http"].rpartition(":")
    return host, int(port)


@pytest.fixture
def local(tmp_path: Path) -> Installation:
    """An installation on SQLite, for what does not depend on the engine."""
    return Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/postroad.db")


def begin_login(service: Service) -> socket.socket:
    """A request whose body is still on its way."""
    connection = socket.create_connection(address(service), timeout=cli_runner.TIMEOUT_SECONDS)
    body = b'{"email": "jo@example.com", "password": "does not matter"}'
    head = b"POST /v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body))
    assert connection.recv(1000).startswith(b"HTTP/1.1 100")  # the service has begun to work on it
    connection.sendall(body[:-1])
    return connection


def answer(connection: socket.socket) -> bytes:
    received = b""
    while part := connection.recv(65536):
        received += part
    return received


def test_the_service_answers_and_ends_in_order(empty: Installation) -> None:
    with serving(empty) as service:
        host, port = address(service)
        assert httpx.get(f"http://{host}:{port}/readyz").status_code == 200
        assert httpx.get(f"http://{host}:{port}/openapi.json").json()["paths"]["/emails"]
        assert service.stop() == (0, "")
        everything = [json.loads(line) for line in service.errors.read_text().splitlines()]
        lines = [line for line in everything if "process" not in line]  # not those of frontends
        events = ["started", "inbound_disabled", "submission_disabled", "stopping", "stopped"]
        assert [line["event"] for line in lines if line["event"] != "request"] == events
        assert [line["event"] for line in everything].count("request") == 1  # probes are not logged
        assert lines[0]["roles"] == ["api", "delivery", "inbound", "maintenance", "submission", "webhooks"]


def test_an_interrupt_from_the_keyboard_ends_it_in_order_too(local: Installation) -> None:
    with serving(local) as service:
        assert service.line("started")
        assert service.stop(signal.SIGINT) == (0, "")


def test_a_role_can_run_alone(local: Installation) -> None:
    with serving(local, "--role", "maintenance", "--role", "maintenance") as service:
        started = service.line("started")
        assert started["roles"] == ["maintenance"]
        assert "http" not in started
        assert service.stop() == (0, "")


def test_delivery_can_be_held_from_the_start_and_stays_held(local: Installation) -> None:
    with serving(local, "--role", "maintenance", "--hold-delivery") as service:
        assert service.line("started")
        assert service.stop() == (0, "")
    (hold,) = local.json("queue", "list")["holds"]
    assert (hold["account_id"], hold["domain"], hold["reason"]) == (None, None, "started with --hold-delivery")


def test_an_unsafe_setting_is_named_in_the_log(local: Installation) -> None:
    key = local.file.parent / "secret.key"
    key.write_text(cli_runner.SECRET_KEY)
    key.chmod(0o640)
    settings = local.file.read_text()
    local.file.write_text(
        settings.replace(f'installation_key = "{cli_runner.SECRET_KEY}"', f'installation_key_file = "{key}"')
    )
    with serving(local, "--role", "maintenance") as service:
        assert service.line("unsafe_setting")["detail"].startswith(
            f"security.installation_key_file: the group of {key} can"
        )
        assert service.line("started")
        assert service.stop() == (0, "")


def test_a_request_under_way_is_finished_while_nobody_new_gets_in(local: Installation) -> None:
    with serving(local) as service, begin_login(service) as connection:
        service.process.send_signal(signal.SIGTERM)
        assert service.line("stopping")["signal"] == "SIGTERM"

        def turned_away() -> bool | None:
            try:
                socket.create_connection(address(service)).close()
            except ConnectionRefusedError:
                return True
            return None

        assert service.wait_for(turned_away, what="the end of listening")
        connection.sendall(b"}")
        assert answer(connection).startswith(b"HTTP/1.1 401")
        assert service.process.wait(cli_runner.TIMEOUT_SECONDS) == 0


def test_a_request_that_takes_longer_than_the_grace_period_gets_an_error(local: Installation) -> None:
    with serving(local, grace_seconds=1) as service, begin_login(service) as connection:
        service.process.send_signal(signal.SIGTERM)
        received = answer(connection)
        assert received.startswith(b"HTTP/1.1 503")
        assert b'"service_unavailable"' in received
        assert service.process.wait(cli_runner.TIMEOUT_SECONDS) == 0


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(local: Installation, second: signal.Signals) -> None:
    with serving(local, grace_seconds=1000) as service, begin_login(service):
        service.process.send_signal(signal.SIGTERM)
        assert service.line("stopping")
        service.process.send_signal(second)
        assert service.process.wait(cli_runner.TIMEOUT_SECONDS) == -second


@pytest.mark.parametrize("key", ["", "secret", "x" * 64])
def test_a_missing_or_weak_key_is_refused(tmp_path: Path, key: str) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text(f'[database]\nurl = "sqlite:///{tmp_path}/postroad.db"\n[security]\ninstallation_key = "{key}"\n')
    assert Installation(file).refusal("serve").startswith("security.installation_key: missing or too weak")
    assert not (tmp_path / "postroad.db").exists()


def test_a_password_of_an_upstream_that_cannot_be_read_is_refused(local: Installation) -> None:
    upstream = 'name = "ses"\nhost = "smtp.example.com"\nusername = "shop"\npassword_file = "absent"\n'
    local.file.write_text(f"{local.file.read_text()}[[upstreams]]\n{upstream}")
    expected = "upstreams.ses.password_file: absent cannot be read: No such file or directory"
    assert local.refusal("serve") == expected


def refused(installation: Installation) -> str:
    """What a service says that does not start, on stderr."""
    with Service("serve", "--config", str(installation.file), folder=installation.file.parent) as service:
        code, stdout, stderr = service.finish()
    assert (code, stdout) == (1, "")
    return stderr


def test_an_address_in_use_is_refused(local: Installation) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        where = f"127.0.0.1:{other.getsockname()[1]}"
        with local.file.open("a") as file:
            file.write(f'[http]\nlisten = "{where}"\n')
        assert refused(local) == (
            f"Error: cannot listen on {where}: the address is in use by another process; "
            "choose another address with http.listen\n"
        )


def test_a_schema_from_the_future_is_refused(local: Installation) -> None:
    async def leave_a_newer_schema(ctx: context.Context) -> None:
        async with ctx.store.transaction() as tx:
            await tx.execute("migrations.record", 9999, "future", 9999)

    local.ask(leave_a_newer_schema)
    assert refused(local).endswith("use a newer Postroad\n")


def test_settings_can_come_from_the_environment_alone(tmp_path: Path) -> None:
    environment = {
        "POSTROAD_DATABASE__URL": f"sqlite:///{tmp_path}/postroad.db",
        "POSTROAD_SECURITY__INSTALLATION_KEY": cli_runner.SECRET_KEY,
        "POSTROAD_HTTP__LISTEN": "127.0.0.1:0",
    }
    with Service("serve", folder=tmp_path, environment=environment) as service:
        host, port = address(service)
        assert httpx.get(f"http://{host}:{port}/healthz").status_code == 200


SETTLED = """
import gc, sys
from postroad.cli.installation import serve
serve.tune_interpreter()
print(gc.isenabled(), gc.get_threshold()[0], gc.get_freeze_count() > 1000, sys.getswitchinterval())
"""


def test_a_settled_process_still_collects_but_less_often_and_not_what_was_imported() -> None:
    printed = subprocess.run([sys.executable, "-c", SETTLED], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["True", "20000", "True", "0.0005"]
