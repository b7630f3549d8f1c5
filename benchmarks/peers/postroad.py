"""Postroad itself, started as an operator starts it: `postroad serve` with a configuration file.

By default only the role `api` runs, because the peers hold their mail too. With a `Relay`, all mail goes to a fixed
next hop; an `Exchange` looks up destinations in DNS; a `WebhookSending` only sends webhooks; an `SmtpSubmission`
accepts mail over SMTP. Accounts and keys are created with the operator's commands. Limits that would refuse or slow
down this load are raised; all other settings, durability above all, keep their defaults. The log goes to a
file, as in production.
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
processes = {frontends}
listen = "127.0.0.1:{port}"
drain_seconds = 0

[limits]
request_rate = 1000000
request_burst = 1000000
api_rate = 1000000

[warmup]
enabled = false

[testing]
hourly_checks = false
sign = {sign}


[security]
installation_key = "{installation_key}"
"""
RELAY_CONFIGURATION = """
[delivery]
hostname = "postroad.example.com"
tls = "off"

[[upstreams]]
name = "sink"
host = "127.0.0.1"
port = {next_hop_port}
tls = "off"
connections = {connections}
messages_per_second = 1000000
messages_per_connection = 10000
"""
# Destinations are on loopback; /readyz is served by the metrics listener. The grace period is short, because one host
# never replies. Limits are the defaults but for the rate, which would be measured in place of the service.
EXCHANGE_CONFIGURATION = """
[delivery]
resolvers = ["{name_server}"]
mx_port = {mx_port}
allow_private = ["127.0.0.0/8"]
hostname = "postroad.example.com"

[providers]
others = {{ connections = 10, messages_per_second = 1000000, messages_per_connection = 100 }}

[metrics]
listen = "127.0.0.1:{port}"
"""
# Endpoints are on loopback; /readyz is served by the metrics listener.
WEBHOOK_CONFIGURATION = """
[delivery]
resolvers = ["{name_server}"]

[webhooks]
allow_private = ["{network}"]
ca_file = "{authority}"

[metrics]
listen = "127.0.0.1:{port}"
"""
# `smtp-source` does not support TLS, so no peer uses it; /readyz is served by the metrics listener.
SUBMISSION_CONFIGURATION = """
[submission]
listen = "127.0.0.1:{smtp_port}"
auth_without_tls = true
connections = 5000

[metrics]
listen = "127.0.0.1:{port}"
"""
Processes = typing.Sequence[typing.Sequence[str]]
API_ONLY: Processes = (("api",),)
API_AND_DELIVERY: Processes = (("api", "delivery", "maintenance"),)
ALL_ROLES: Processes = (("api", "delivery", "inbound", "maintenance", "submission", "webhooks"),)
DELIVERY_ONLY: Processes = (("delivery", "maintenance"),)
WEBHOOKS_ONLY: Processes = (("webhooks",),)
SUBMISSION_ONLY: Processes = (("submission",),)
ACCOUNT = "Benchmark"
CREDITS = 1_000_000_000
PROGRAM = (sys.executable, "-m", "postroad")
# The line of the log that says that all roles of a process have started.
STARTED = b'"event":"started"'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """Where accepted mail goes, over how many connections at once, whether signed, and by which processes' roles."""

    next_hop_port: int
    sign: bool
    processes: Processes = API_AND_DELIVERY
    connections: int = 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Mail goes where DNS says, to hosts that all listen on one port, by which processes' roles."""

    mx_port: int
    name_server: str
    processes: Processes = DELIVERY_ONLY


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSending:
    """The private network of the endpoints, their CA and name server, and the roles."""

    network: str
    authority: pathlib.Path
    name_server: str
    processes: Processes = WEBHOOKS_ONLY


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SmtpSubmission:
    """Where mail comes in over SMTP, by which processes' roles."""

    smtp_port: int
    processes: Processes = SUBMISSION_ONLY


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The dashboard is looked at, and mail neither comes nor goes, by which processes' roles."""

    processes: Processes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Postroad:
    """A running service of one process or more, with an account that may send."""

    pids: tuple[int, ...]
    port: int
    api_key: str
    configuration: pathlib.Path

    def verify(self) -> tuple[int, list[str]]:
        """The number of stored messages, and the findings of `postroad verify`."""
        report = operate(self.configuration, "verify", accept=(0, 1))
        return int(report["counts"]["messages"]), [str(finding) for finding in report["findings"]]


Work = Relay | Exchange | WebhookSending | SmtpSubmission | Pages
Prepare = typing.Callable[[pathlib.Path], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A service that is configured and could start: its folder, and an account that may send."""

    folder: pathlib.Path
    port: int
    api_key: str
    configuration: pathlib.Path


@contextlib.contextmanager
def running(
    folder: pathlib.Path,
    *,
    database_url: str,
    work: Work | None = None,
    prepare: Prepare | None = None,
    program: typing.Sequence[str] = PROGRAM,
    frontends: int = 0,
) -> typing.Iterator[Postroad]:
    """A service on an empty database, ready for requests; stopped and its folder deleted at the end.

    `prepare` gets the configuration when the database has its tables, before the service starts. Another `program`
    serves as `postroad` does, and is looked at meanwhile. `frontends` are processes that take mail; 0 is the default.
    """
    with (
        installed(folder, database_url=database_url, work=work, prepare=prepare, frontends=frontends) as installation,
        serving(installation, processes=work.processes if work else API_ONLY, program=program) as service,
    ):
        yield service


@contextlib.contextmanager
def installed(
    folder: pathlib.Path,
    *,
    database_url: str,
    work: Work | None = None,
    prepare: Prepare | None = None,
    frontends: int = 0,
) -> typing.Iterator[Installation]:
    """What `running` does before the service starts, for those who start it more than once."""
    folder.mkdir(parents=True)
    try:
        configuration = folder / "postroad.toml"
        port = process.free_port()
        configuration.write_text(_settings(database_url=database_url, port=port, work=work, frontends=frontends))
        operate(configuration, "migrate")
        api_key = create_sender(configuration)
        if prepare is not None:
            prepare(configuration)
        yield Installation(folder=folder, port=port, api_key=api_key, configuration=configuration)
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def serving(
    installation: Installation, *, processes: Processes, program: typing.Sequence[str] = PROGRAM
) -> typing.Iterator[Postroad]:
    """The service as so many, each with its roles; stopped at the end.

    They start one after the other: imports take a second of CPU or more, and all at once would exceed the time of each
    on a busy machine. None still starts when the first window begins.
    """
    configuration, port = installation.configuration, installation.port
    serve = (*program, "serve", "--config", str(configuration))
    with contextlib.ExitStack() as stack:
        services = [
            _start(stack, [*serve, *_words(roles)], log=installation.folder / f"postroad-{number}.log")
            for number, roles in enumerate(processes, start=1)
        ]
        process.wait_until(lambda: _ready(port), what="the start of Postroad")
        pids = tuple(service.pid for service in services)
        yield Postroad(pids=pids, port=port, api_key=installation.api_key, configuration=configuration)


def _settings(*, database_url: str, port: int, work: Work | None, frontends: int) -> str:
    # Without the role `api`, the port is that of the metrics.
    is_api = work is None or isinstance(work, Pages | Relay)
    settings = CONFIGURATION.format(
        database_url=database_url,
        port=port if is_api else 0,
        installation_key=secrets.token_urlsafe(48),
        frontends=frontends,
        sign="true" if isinstance(work, Relay) and work.sign else "false",
    )
    match work:
        case None | Pages():
            return settings
        case Relay():
            return settings + RELAY_CONFIGURATION.format(next_hop_port=work.next_hop_port, connections=work.connections)
        case Exchange():
            return settings + EXCHANGE_CONFIGURATION.format(
                name_server=work.name_server, mx_port=work.mx_port, port=port
            )
        case WebhookSending():
            return settings + WEBHOOK_CONFIGURATION.format(
                network=work.network, authority=work.authority, name_server=work.name_server, port=port
            )
        case SmtpSubmission():
            return settings + SUBMISSION_CONFIGURATION.format(smtp_port=work.smtp_port, port=port)


def _words(roles: typing.Sequence[str]) -> list[str]:
    return [word for role in roles for word in ("--role", role)]


def _start(stack: contextlib.ExitStack, command: typing.Sequence[str], *, log: pathlib.Path) -> subprocess.Popen[bytes]:
    """One process of the service, which has started; stopped when the stack is."""
    written = log.stat().st_size if log.exists() else 0  # by an earlier one
    service = process.start(command, log=log)
    stack.callback(process.stop, service)
    process.wait_until(lambda: _has_started(service, log, written), what=f"the start of {' '.join(command)}")
    return service


def create_sender(configuration: pathlib.Path) -> str:
    """An account with credits and a verified domain; returns an API key of it."""
    account = str(operate(configuration, "account", "create", "--name", ACCOUNT)["account"]["id"])
    operate(configuration, "credits", "add", "--account", account, "--amount", str(CREDITS))
    domain = message.SENDER.partition("@")[2]
    operate(configuration, "domain", "add", "--account", account, "--verified", domain)
    return str(operate(configuration, "apikey", "create", "--account", account)["api_key"]["key"])


def create_reader(configuration: pathlib.Path) -> str:
    """An API key of the account that may read what was sent."""
    made = operate(configuration, "apikey", "create", "--account", ACCOUNT, "--scope", "read")
    return str(made["api_key"]["key"])


def create_login(configuration: pathlib.Path) -> tuple[str, str]:
    """An SMTP username of the account, and its password."""
    made = operate(configuration, "credential", "create", "--account", ACCOUNT)["credential"]
    return str(made["username"]), str(made["password"])


def operate(configuration: pathlib.Path, *words: str, accept: tuple[int, ...] = (0,)) -> dict[str, typing.Any]:
    """Run an operator's command and return what it prints as JSON."""
    command = [*PROGRAM, *words, "--config", str(configuration), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in accept:
        raise RuntimeError(f"postroad {' '.join(words)} failed ({done.returncode}): {done.stdout}{done.stderr}")
    printed: dict[str, typing.Any] = json.loads(done.stdout)
    return printed


def _has_started(service: subprocess.Popen[bytes], log: pathlib.Path, written: int) -> bool:
    if service.poll() is not None:
        raise RuntimeError(f"postroad serve ended with {service.returncode} before it had started")
    return STARTED in log.read_bytes()[written:]


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            status: int = answer.status
            return status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
