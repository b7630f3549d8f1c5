"""A real server for the commands that work over HTTP, one for a module, and a home folder for each test."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click.testing
import pytest

from tests.cli import cli_runner
from tests.services.operations.checks import setups

ALL_SCOPES = "send,read,templates,suppressions,webhooks,domains,statistics"


@dataclass(frozen=True, slots=True)
class Server:
    """A running `postroad dev`, with a certificate."""

    service: cli_runner.Service
    data: Path
    url: str
    key: str

    def key_with(self, scopes: str) -> str:
        words = [word for scope in scopes.split(",") for word in ("--scope", scope)]
        printed = cli_runner.run("apikey", "create", "--name", "of a test", *words, "--json", "--data", str(self.data))
        assert printed.exit_code == 0, printed.output
        key: str = json.loads(printed.stdout)["api_key"]["key"]
        return key


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    words = ("dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0")
    # A domain check asks a DNS server; nobody is there.
    files, _ = setups.certificate(folder, "mail.example.com", days=None)
    environment = {
        "POSTROAD_DELIVERY__RESOLVERS": "127.0.0.1:1",
        "POSTROAD_HTTP__TLS": "false",
        **{f"POSTROAD_TLS__{name.upper()}": file for name, file in files.items()},
    }
    with cli_runner.Service(*words, folder=folder, environment=environment) as service:
        file = folder / ".postroad" / "dev.json"
        info = service.wait_for(lambda: json.loads(file.read_text()) if file.exists() else None, what="the start")
        plain = Server(service, file.parent, info["base_url"], info["api_key"])
        yield Server(service, file.parent, plain.url, plain.key_with(ALL_SCOPES))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder without logins, and an environment that names nothing."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("POSTROAD_URL", raising=False)
    monkeypatch.delenv("POSTROAD_API_KEY", raising=False)
    return tmp_path


@pytest.fixture
def remote(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, named by the environment."""
    del home
    monkeypatch.setenv("POSTROAD_URL", server.url)
    monkeypatch.setenv("POSTROAD_API_KEY", server.key)
    return server


def text(*words: str, given: str | None = None) -> str:
    """What a command prints for people; it has to succeed."""
    result = cli_runner.run(*words, given=given)
    assert result.exit_code == 0, result.output
    return result.stdout


def data(*words: str, given: str | None = None) -> Any:  # noqa: ANN401 - JSON
    """What a command prints for programs."""
    return json.loads(text(*words, "--json", given=given))


def refusal(result: click.testing.Result, *, exit_code: int) -> str:
    """The error of a command, which printed no result."""
    assert (result.exit_code, result.stdout) == (exit_code, ""), result.output
    return result.stderr.rstrip("\n").splitlines()[-1].removeprefix("Error: ")
