"""`postroad serve` in processes of their own, to be killed, starved and stopped, and callers who do not give up.

A caller repeats a request with the same key until it is answered, as any client of a service should, and keeps the
answer. `prove` then compares the store with what the callers know.
"""

import asyncio
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx

from postroad import config, context
from postroad.mail.signing import domain_keys
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import lookup as messages
from postroad.services.operations import operator_jobs
from postroad.services.people import api_keys, credentials
from tests import sections, warm_processes
from tests.contexts import SECRET_KEY

# Bounds for a machine that is busy with other tests: a start takes half a second, an answer some milliseconds.
TIMEOUT_SECONDS = 600.0
POLL_SECONDS = 0.01
CREDITS = 100_000
# Nothing is sent to the internet: a test that delivers mail configures where to.
ROLES = ("api", "maintenance")
DOMAIN = "example.com"
RECIPIENTS = ("ada@example.net", "Ada@Example.net", "bob@example.net")
UNIQUE_RECIPIENTS = 2
# The temporary refusals that a caller may get, and then tries again.
TRY_AGAIN = {"service_unavailable", "temporary_failure", "idempotency_in_progress"}


async def until(what: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again until it is so."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not await what():
            await asyncio.sleep(POLL_SECONDS)


class Service:
    """A process; it can be ended and started again on the same store."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *,
        roles: Sequence[str] = ROLES,
        sections: str = "",
        limits: Mapping[str, int] | None = None,
        frontends: int = 1,
        drain_seconds: int = 0,
    ) -> None:
        self.url = url
        self.base_url = ""
        self.file = folder / "postroad.toml"
        self.log = folder / "service.log"
        self._process: subprocess.Popen[bytes] | warm_processes.Command | None = None
        self._roles = roles
        self._sections = sections
        self._frontends = frontends
        self._drain_seconds = drain_seconds
        # No rate is what a test of crashes means to meet.
        self._limits = {"request_rate": 1_000_000, "request_burst": 1_000_000, **(limits or {})}
        self.move(url)

    def move(self, url: str) -> None:
        """Let commands, and the next start, find the store elsewhere."""
        self.url = url
        limits, testing = (
            "".join(
                f"{name} = {value}\n"
                for name, value in self._limits.items()
                if (name in sections.TESTING) is is_testing
            )
            for is_testing in (False, True)
        )
        others = self._sections if "[testing]\n" in self._sections else f"{self._sections}[testing]\n"
        others = others.replace("[testing]\n", f"[testing]\nhourly_checks = false\n{testing}")
        self.file.write_text(
            f'[database]\nurl = "{url}"\n[http]\nlisten = "127.0.0.1:0"\nprocesses = {self._frontends}\n'
            f"drain_seconds = {self._drain_seconds}\n"
            f'[security]\ninstallation_key = "{SECRET_KEY}"\n'
            f"[limits]\n{limits}[warmup]\nenabled = false\n[domains]\ncheck_hours = 0\n{others}"
        )

    @property
    def is_started(self) -> bool:
        return self._process is not None

    @property
    def process(self) -> subprocess.Popen[bytes] | warm_processes.Command:
        assert self._process is not None
        return self._process

    @property
    def address(self) -> tuple[str, int]:
        url = httpx.URL(self.base_url)
        return url.host, url.port or 0

    async def start(
        self,
        *before: str,
        log: IO[bytes] | None = None,
        pass_fds: Sequence[int] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start, and return when it listens.

        `before` is a command to run it under, which needs a new interpreter; `variables` of the environment do not.
        `log` is who writes the log file.
        """
        await asyncio.to_thread(self._launch, before, log, pass_fds, {**environment(), **(variables or {})})
        await until(self._is_listening)

    def _launch(
        self, before: Sequence[str], log: IO[bytes] | None, pass_fds: Sequence[int], variables: Mapping[str, str]
    ) -> None:
        if not before and log is None:
            self._process = self._fork(variables)
            return
        with self.log.open("wb" if log is None else "ab") as file:
            self._process = subprocess.Popen(
                [*before, sys.executable, "-m", "postroad", "serve", "--config", str(self.file), *self._named_roles()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log or file,
                env=variables,
                pass_fds=pass_fds,
            )

    def _fork(self, variables: Mapping[str, str]) -> warm_processes.Command:
        self.log.write_bytes(b"")
        words = ["serve", "--config", str(self.file), *self._named_roles()]
        return warm_processes.Command(words, printed=Path(os.devnull), logged=self.log, environment=variables)

    def _named_roles(self) -> list[str]:
        return [word for role in self._roles for word in ("--role", role)]

    async def _is_listening(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        for line in self.log.read_bytes().splitlines():
            if b'"started"' in line:
                started = json.loads(line)
                self.base_url = f"http://{started['http']}" if "http" in started else ""
                return True
        return False

    async def kill(self) -> None:
        """End it as a power cut would, as far as a process can tell."""
        self.base_url = ""
        self.process.kill()
        await self.ended()

    async def stop(self) -> int:
        """Ask it to stop; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await self.ended()

    async def ended(self) -> int:
        await until(self._has_ended)
        return self.process.wait(TIMEOUT_SECONDS)

    async def _has_ended(self) -> bool:
        return self.process.poll() is not None

    def errors(self) -> list[bytes]:
        """What it logged as a fault of its own since it was started."""
        return [line for line in self.log.read_bytes().splitlines() if b'"level":"error"' in line]

    async def command(self, *words: str) -> tuple[int, Any]:
        """Run an operator's command in a process of its own; its exit code, and what it printed."""
        printed, logged = self.file.with_suffix(".printed"), self.file.with_suffix(".logged")
        printed.write_bytes(b"")
        command = functools.partial(warm_processes.Command, printed=printed, logged=logged, environment=environment())
        running = await asyncio.to_thread(command, [*words, "--json", "--config", str(self.file)])
        code = await asyncio.to_thread(running.wait, TIMEOUT_SECONDS)
        return code, json.loads(printed.read_bytes() or b"null")


def environment() -> dict[str, str]:
    """Nothing of whoever runs the tests reaches the service."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("POSTROAD_", "PG"))}


@contextlib.asynccontextmanager
async def ending(service: Service) -> AsyncIterator[Service]:
    """A service whose end nobody has to think of."""
    try:
        yield service
    finally:
        if service.is_started:
            service.process.kill()
            service.process.wait(TIMEOUT_SECONDS)


@contextlib.asynccontextmanager
async def running(folder: Path, url: str, **limits: int) -> AsyncIterator[Service]:
    """A running service."""
    async with ending(Service(folder, url, limits=limits)) as service:
        await service.start()
        yield service


@dataclass(frozen=True, slots=True)
class Account:
    """An account with credits, and a key that may send and read."""

    id: str
    api_key: str
    api_key_id: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"}


@contextlib.asynccontextmanager
async def inside(url: str) -> AsyncIterator[context.Context]:
    """The services themselves on the same store, for preparing and for looking."""
    settings = config.load(
        environment={}, overrides={"database": {"url": url}, "security": {"installation_key": SECRET_KEY}}
    )
    async with composition.open_context(settings) as opened:
        yield opened


async def open_account(url: str) -> Account:
    async with inside(url) as ctx:
        account = await accounts.create(ctx, "Shop")
        # The key that signs is made here, which is quicker than in the service.
        await domain_keys.record(ctx, await domains.add(ctx, account.id, DOMAIN, verified=True))
        await credits.add(ctx, account.id, CREDITS, None)
        await credentials.create(ctx, account.id, "default")
        key, secret = await api_keys.create(
            ctx,
            account.id,
            credential_id=None,
            name="default",
            scopes=frozenset({callers.Permission.SEND, callers.Permission.READ}),
        )
        return Account(account.id, secret, key.id)


@dataclass(frozen=True, slots=True)
class Receipt:
    """An answer of 202: the bytes, and the id of the request that made them."""

    body: bytes
    request_id: str
    replayed: bool

    @classmethod
    def of(cls, response: httpx.Response) -> "Receipt":
        assert response.status_code == 202, response.text
        assert response.json()["request_id"] == response.headers["x-request-id"]
        replayed = response.headers.get("idempotent-replayed")
        assert replayed in {None, "true"}
        return cls(response.content, response.headers["x-request-id"], replayed == "true")


def check_refusal(response: httpx.Response, status: int, code: str) -> None:
    """The error object, with a hint when to retry if it is the service's fault."""
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    assert response.headers["x-request-id"] == response.json()["request_id"]
    assert ("retry-after" in response.headers) == (status == 503 or code == "idempotency_in_progress")


@dataclass(slots=True)
class Callers:
    """Everyone who sends to a service, and what they know."""

    service: Service
    account: Account
    client: httpx.AsyncClient
    receipts: dict[str, Receipt] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)

    async def post(self, key: str, *, base_url: str | None = None, **changes: object) -> httpx.Response:
        """One request, once."""
        return await self.client.post(
            f"{base_url or self.service.base_url}/emails",
            json=self.body(key) | changes,
            headers={**self.account.headers, "Idempotency-Key": key},
        )

    @staticmethod
    def body(key: str) -> dict[str, object]:
        """What is sent with a key. The subject is the key, so that a message tells which key made it."""
        return {"from": f"shop@{DOMAIN}", "to": RECIPIENTS, "subject": key, "text": "Hello"}

    async def send(self, key: str, **changes: Any) -> Receipt:
        """Repeat a request until it is accepted."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                receipt = await self._try(key, **changes)
                if receipt is not None:
                    self._remember(key, receipt)
                    return receipt
                await asyncio.sleep(POLL_SECONDS)

    async def _try(self, key: str, **changes: Any) -> Receipt | None:
        if not self.service.base_url:
            return None
        try:
            response = await self.post(key, **changes)
        except httpx.TransportError:
            return None
        if response.status_code == 202:
            return Receipt.of(response)
        code = response.json()["code"]
        assert code in TRY_AGAIN, response.text
        check_refusal(response, response.status_code, code)
        self.refusals.append(code)
        return None

    def _remember(self, key: str, receipt: Receipt) -> None:
        first = self.receipts.setdefault(key, receipt)
        assert (receipt.body, receipt.request_id) == (first.body, first.request_id), key
        assert receipt.replayed or receipt is first, f"{key} was accepted twice"

    async def repeat_everything(self) -> None:
        """Every key is answered with the same bytes again."""
        for key in list(self.receipts):
            assert (await self.send(key)).replayed

    async def prove(self) -> None:
        """One message for each key, no other, and every credit in its place."""
        acknowledged = sorted((key, json.loads(receipt.body)["id"]) for key, receipt in self.receipts.items())
        async with inside(self.service.url) as ctx:
            stored = await stored_messages(ctx, self.account.id)
            found = await accounts.find(ctx, self.account.id)
            report = await operator_jobs.check_consistency(ctx)
        assert stored == acknowledged
        used = len(stored) * UNIQUE_RECIPIENTS
        assert (found.available, found.reserved) == (CREDITS - used, used)
        assert report.findings == []
        assert report.counts.idempotency_keys == len(stored)


async def stored_messages(ctx: context.Context, account_id: str) -> list[tuple[str, str]]:
    """The subject and the id of every message."""
    page = await messages.page(ctx, account_id, messages.Filters(), limit=CREDITS, cursor=None)
    return sorted((message.subject, message.id) for message in page.messages)


@contextlib.asynccontextmanager
async def calling(service: Service) -> AsyncIterator[Callers]:
    """Callers of a running service, with a new account."""
    account = await open_account(service.url)
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
    async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, limits=limits, trust_env=False) as client:
        yield Callers(service, account, client)
