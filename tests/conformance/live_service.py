"""A running service, as a stranger meets it: `postroad serve` in a process of its own, spoken to over HTTP alone.

What was stored is read back through the API, and `postroad verify` counts it. When the service ends, its log must hold
neither a fault of ours nor a secret.
"""

import base64
import contextlib
import email
import email.policy
import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
import pytest

from postroad import context
from postroad.mail.signing import domain_keys
from postroad.model.people import callers
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys, credentials, logins, users
from postroad.services.templates import templates
from tests import open_resources, warm_processes
from tests.cli import cli_runner

JSON = "application/json"
# A start takes half a second; this bound is for a machine that is busy with other tests.
TIMEOUT_SECONDS = 600.0
POLL_SECONDS = 0.02
PASSWORD = "correct horse battery"
MANY_CREDITS = 1_000_000
FOREIGN_PREFIXES = ("POSTROAD_", "PG")
ERROR_MEMBERS = {"error", "code", "request_id"}
# Words of tracebacks and databases: none of them is for a caller.
INTERNALS = ("Traceback", 'File "', ".py", "SELECT", "INSERT", "apsw", "asyncpg", "msgspec")
GOOD: dict[str, Any] = {"from": "shop@example.com", "to": "ada@example.org", "subject": "Hello", "text": "Hi"}
# What most tests need: mail is accepted and stays where it is.
API_ROLES = ("api", "maintenance")
# Stands for a member that is left out.
ABSENT: Any = object()


def message(**changes: Any) -> dict[str, Any]:
    """A send request that is accepted, with changes; `from_` is `from`, and `ABSENT` takes a member out."""
    changed = GOOD | {name.removesuffix("_"): value for name, value in changes.items()}
    return {name: value for name, value in changed.items() if value is not ABSENT}


def new_key() -> str:
    """An idempotency key that nobody has used."""
    return f"test-{uuid.uuid4()}"


def check_refusal(response: httpx.Response, status: int, code: str) -> str:
    """The response is this refusal, as the error object and with its id in the header; returns its sentence."""
    assert (response.status_code, response.json().get("code")) == (status, code), response.text
    assert response.headers["content-type"] == JSON
    body = response.json()
    assert set(body) == ERROR_MEMBERS
    assert all(isinstance(value, str) and value for value in body.values())
    assert response.headers["x-request-id"] == body["request_id"]
    assert not any(word in body["error"] for word in INTERNALS), body["error"]
    return str(body["error"])


class KeptConnections(httpx.HTTPTransport):
    """Connections that outlive the test that opened them, as the service does."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with open_resources.shared():
            return super().handle_request(request)


@dataclass(frozen=True, slots=True)
class Account:
    """An account, and the `Authorization` of each kind of caller that it has."""

    id: str
    domain: str
    basic: str
    api_key: str
    reading_key: str
    owner: str
    reader: str
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Service:
    """A running service with two accounts, `mine` and `theirs`."""

    base_url: str
    installation: cli_runner.Installation
    client: httpx.Client
    mine: Account = field(repr=False)
    theirs: Account = field(repr=False)

    @property
    def address(self) -> tuple[str, int]:
        url = httpx.URL(self.base_url)
        return url.host, url.port or 0

    def post(
        self,
        body: Mapping[str, Any] | bytes,
        *,
        key: str | None = None,
        authorization: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """`POST /emails` as my SMTP credential and with a new key, unless told otherwise."""
        fields = {
            "Authorization": authorization or self.mine.basic,
            "Content-Type": JSON,
            "Idempotency-Key": key or new_key(),
            **(headers or {}),
        }
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post("/emails", content=content, headers=fields)

    def accept(self, **changes: Any) -> dict[str, Any]:
        """Send a message that has to be accepted; the send response."""
        response = self.post(message(**changes))
        assert response.status_code == 202, response.text
        body: dict[str, Any] = response.json()
        return body

    def refuse(self, **changes: Any) -> str:
        """Send a message that has to be refused as an invalid request, with nothing stored; the sentence."""
        before = self.balance()
        sentence = check_refusal(self.post(message(**changes)), 400, "invalid_request")
        assert self.balance() == before
        return sentence

    def get(self, path: str, *, authorization: str | None = None) -> httpx.Response:
        """A GET as my SMTP credential, unless told otherwise."""
        return self.client.get(path, headers={"Authorization": authorization or self.mine.basic})

    def read(self, message_id: str) -> dict[str, Any]:
        """The message object of `GET /emails/{id}`."""
        response = self.get(f"/emails/{message_id}")
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    def raw(self, message_id: str) -> bytes:
        """The message as it was stored and will be sent."""
        response = self.get(f"/v1/messages/{message_id}/raw", authorization=self.mine.owner)
        assert response.status_code == 200, response.text
        return response.content

    def sent(self, **changes: Any) -> EmailMessage:
        """Send a message; what was stored of it, read by the standard library."""
        return parse(self.raw(self.accept(**changes)["id"]))

    def balance(self) -> tuple[int, int]:
        """My available and my reserved credits: whatever is accepted changes them."""
        credits_now = self.get("/v1/account", authorization=self.mine.owner).json()["account"]["credits"]
        return credits_now["available"], credits_now["reserved"]

    def counts(self) -> dict[str, int]:
        """How much is stored, in a consistent store."""
        audited = self.installation.json("verify")
        assert audited["findings"] == []
        counts: dict[str, int] = audited["counts"]
        return counts


def parse(raw: bytes) -> EmailMessage:
    """A message as a mail program sees it; one that is damaged is refused."""
    parsed = email.message_from_bytes(raw, policy=email.policy.default)
    assert [part.defects for part in parsed.walk() if part.defects] == []
    return parsed


def text_of(parsed: EmailMessage, kind: str) -> str | None:
    """The text or the html of a message, without the line end that ends every message."""
    body = parsed.get_body((kind,))
    return None if body is None else str(body.get_content()).replace("\r\n", "\n").removesuffix("\n")


async def make_account(ctx: context.Context, name: str, *, domain: str, amount: int) -> Account:
    """An account with credits, a domain, the template `welcome`, and callers of every kind."""
    account_id = (await accounts.create(ctx, name)).id
    await credits.add(ctx, account_id, amount, None)
    # The key that signs is made here, which is quicker than in the service.
    await domain_keys.record(ctx, await domains.add(ctx, account_id, domain, verified=True))
    await templates.put(
        ctx, account_id, "welcome", subject="Welcome {{name}}", text="Hi {{name}}", html="<p>Hi {{name}}"
    )
    credential, password = await credentials.create(ctx, account_id, "default")
    keys = [
        (await api_keys.create(ctx, account_id, credential_id=credential.id, name="key", scopes=frozenset(scopes)))[1]
        for scopes in ([callers.Permission.SEND], [callers.Permission.SEND, callers.Permission.READ])
    ]
    tokens = []
    for role in (callers.Role.OWNER, callers.Role.READ_ONLY):
        person, _ = await users.create(ctx, account_id, email=f"{role}@{domain}", password=PASSWORD, role=role)
        tokens.append((await logins.issue_token(ctx, person)).token)
    pair = base64.b64encode(f"{credential.username}:{password}".encode()).decode()
    return Account(
        account_id,
        domain,
        basic=f"Basic {pair}",
        api_key=f"Bearer {keys[0]}",
        reading_key=f"Bearer {keys[1]}",
        owner=f"Bearer {tokens[0]}",
        reader=f"Bearer {tokens[1]}",
        secrets=(pair, password, *keys, *tokens, PASSWORD),
    )


async def make_accounts(ctx: context.Context) -> tuple[Account, Account]:
    """Two accounts that have nothing to do with each other."""
    mine = await make_account(ctx, "Mine", domain="example.com", amount=MANY_CREDITS)
    return mine, await make_account(ctx, "Theirs", domain="example.net", amount=MANY_CREDITS)


@contextlib.contextmanager
def running(
    folder: Path, *, url: str, settings: str = "", has_outages: bool = False, roles: Sequence[str] = API_ROLES
) -> Iterator[Service]:
    """A service on the store behind the URL, until the block ends; `settings` is more of its configuration."""
    log = folder / "log"
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(FOREIGN_PREFIXES):
                patch.delenv(name)
        installation = cli_runner.Installation.at(folder, url=url)
        with installation.file.open("a") as file:
            # One login serves all tests, which take longer than a quarter of an hour on a slow machine.
            file.write("confirmation_minutes = 1440\n")
            file.write(f'[http]\nlisten = "127.0.0.1:0"\ndrain_seconds = 0\n{settings}')
        mine, theirs = installation.ask(make_accounts)
        with (
            _process(installation, log, roles) as base_url,
            httpx.Client(base_url=base_url, timeout=TIMEOUT_SECONDS, transport=KeptConnections()) as client,
        ):
            yield Service(base_url, installation, client, mine, theirs)
    lines = log.read_text()
    assert not any(secret in lines for secret in (*mine.secrets, *theirs.secrets))
    assert has_outages or _faults(lines) == []


@contextlib.contextmanager
def _process(installation: cli_runner.Installation, log: Path, roles: Sequence[str]) -> Iterator[str]:
    """`postroad serve` in a process of its own, which has to end well when it is asked to."""
    chosen = [word for role in roles for word in ("--role", role)]
    process = warm_processes.Command(
        ["serve", *chosen, "--config", str(installation.file)],
        printed=Path(os.devnull),
        logged=log,
        environment=os.environ,
    )
    try:
        yield f"http://{_listening(process, log)}"
    finally:
        process.terminate()
        try:
            process.wait(TIMEOUT_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0, log.read_text()[-2000:]


def _listening(process: warm_processes.Command, log: Path) -> str:
    """Where the service says that it listens."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text().splitlines(keepends=True) if log.exists() else ():
            if line.endswith("\n") and json.loads(line)["event"] == "started":
                return str(json.loads(line)["http"])
        time.sleep(POLL_SECONDS)
    raise RuntimeError(f"the service did not start:\n{log.read_text()[-2000:]}")


def _faults(log: str) -> list[dict[str, Any]]:
    """What a log says of things that went wrong on our side."""
    lines = [json.loads(line) for line in log.splitlines()]
    return [line for line in lines if line["level"] in {"error", "critical"} or line["event"] == "request_failed"]
