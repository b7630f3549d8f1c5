"""Postroad itself, started as an operator starts it: `postroad serve` with a configuration file.

Only the `api` role runs, because a peer that holds its mail delivers nothing either. Everything that a request needs
is made by the operator's commands. The limits that would refuse a flood from one credential are raised; everything
else stays at its default, and durability above all. Its log goes to a file, as in production.
"""

import contextlib
import dataclasses
import json
import pathlib
import secrets
import shutil
import subprocess
import sys
import typing
import urllib.error
import urllib.request

from benchmarks import message
from benchmarks.peers import process

CONFIGURATION = """
[database]
url = "{database_url}"

[http]
listen = "127.0.0.1:{port}"

[limits]
request_rate = 1000000
request_burst = 1000000

[security]
secret_key = "{secret_key}"
"""
CREDITS = 1_000_000_000
PROGRAM = (sys.executable, "-m", "postroad")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Postroad:
    """A running service, with an account that may send."""

    pid: int
    port: int
    api_key: str
    configuration: pathlib.Path

    def audit(self) -> tuple[int, list[str]]:
        """How many messages are stored, and everything that `postroad audit` finds wrong."""
        report = operate(self.configuration, "audit", accept=(0, 1))
        return int(report["counts"]["messages"]), [str(finding) for finding in report["findings"]]


@contextlib.contextmanager
def running(folder: pathlib.Path, *, database_url: str) -> typing.Iterator[Postroad]:
    """A service on an empty database, ready for requests; stopped and its folder deleted at the end."""
    folder.mkdir(parents=True)
    configuration = folder / "postroad.toml"
    port = process.free_port()
    secret_key = secrets.token_urlsafe(48)
    configuration.write_text(CONFIGURATION.format(database_url=database_url, port=port, secret_key=secret_key))
    operate(configuration, "migrate")
    api_key = create_sender(configuration)
    service = process.start(
        [*PROGRAM, "serve", "--config", str(configuration), "--role", "api"], log=folder / "postroad.log"
    )
    try:
        process.wait_until(lambda: _ready(service, port=port), what="the start of Postroad")
        yield Postroad(pid=service.pid, port=port, api_key=api_key, configuration=configuration)
    finally:
        process.stop(service)
        shutil.rmtree(folder)


def create_sender(configuration: pathlib.Path) -> str:
    """An account with credits and a verified domain; returns an API key of it."""
    account = str(operate(configuration, "account", "create", "--name", "Benchmark")["account"]["id"])
    operate(configuration, "credits", "add", "--account", account, "--amount", str(CREDITS))
    domain = message.SENDER.partition("@")[2]
    operate(configuration, "domain", "add", "--account", account, "--verified", domain)
    return str(operate(configuration, "apikey", "create", "--account", account)["api_key"]["key"])


def operate(configuration: pathlib.Path, *words: str, accept: tuple[int, ...] = (0,)) -> dict[str, typing.Any]:
    """Run an operator's command and return what it prints as JSON."""
    command = [*PROGRAM, *words, "--config", str(configuration), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in accept:
        raise RuntimeError(f"postroad {' '.join(words)} failed ({done.returncode}): {done.stdout}{done.stderr}")
    printed: dict[str, typing.Any] = json.loads(done.stdout)
    return printed


def _ready(service: subprocess.Popen[bytes], *, port: int) -> bool:
    if service.poll() is not None:
        raise RuntimeError(f"postroad serve ended with {service.returncode} before it was ready")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            status: int = answer.status
            return status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
