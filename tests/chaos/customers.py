"""Customers: accounts with credits, a key for HTTP, a login for SMTP, and a webhook endpoint that fails now and then.

An endpoint does what the documentation asks for: it verifies the signature over the bytes before it looks at them,
and knows an event that it has seen by its id. It keeps every request that was genuine; what was not is a finding.
"""

import collections
import contextlib
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from postroad import context
from postroad.model.people import callers
from postroad.protocol.signatures import webhook_signature
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys, credentials
from postroad.services.webhooks import endpoints
from tests import webhook_server
from tests.webhook_server import OK, ReceivedRequest, WebhookServer

CREDITS = 10_000_000
# How often an event is refused at the most: with the deaths of workers fewer than its seven attempts.
MAX_REFUSALS = 2
REFUSALS = (
    webhook_server.ok(500, b"broken"),
    webhook_server.ok(503, b"", "Connection: close"),
    webhook_server.ok(302, b"", "Location: /elsewhere"),
    b"220 not HTTP at all\r\n\r\n",
)
REFUSED_SHARE = 0.15


@dataclass(slots=True)
class Customer:
    """An account, what it sends with, and what its endpoint received."""

    account_id: str
    sender: str
    api_key: str
    login: tuple[str, str]
    secret: str
    # The bodies of each event, one for each request.
    received: dict[str, list[bytes]] = field(default_factory=lambda: collections.defaultdict(list))
    not_genuine: list[str] = field(default_factory=list)

    def hear(self, request: ReceivedRequest) -> str | None:
        """Verify and keep; returns the id of the event."""
        header = request.headers.get(webhook_signature.HEADER.lower(), "")
        why = webhook_signature.why_refused(header, request.body, secret=self.secret, now=int(time.time()))
        if why is not None:
            self.not_genuine.append(f"{why}: {request.body[:200]!r}")
            return None
        event_id = str(json.loads(request.body)["id"])
        self.received[event_id].append(request.body)
        return event_id


def answering(customer: Customer, chance: random.Random) -> Callable[[ReceivedRequest], bytes]:
    """The response of the endpoint: mostly 2xx, now and then an error."""
    refused: collections.Counter[str] = collections.Counter()

    def answer(request: ReceivedRequest) -> bytes:
        event_id = customer.hear(request)
        if event_id is None:
            return webhook_server.ok(401)
        if chance.random() >= REFUSED_SHARE or refused[event_id] >= MAX_REFUSALS:
            return OK
        refused[event_id] += 1
        return chance.choice((*REFUSALS, b""))  # no bytes at all: it hangs up

    return answer


async def open_customer(ctx: context.Context, number: int, endpoint: WebhookServer) -> Customer:
    """A new customer."""
    domain = f"shop{number}.example.com"
    account = await accounts.create(ctx, f"Shop {number}")
    await domains.add(ctx, account.id, domain, verified=True)
    await credits.add(ctx, account.id, CREDITS, None)
    credential, password = await credentials.create(ctx, account.id, "default")
    scopes = frozenset({callers.Permission.SEND, callers.Permission.READ})
    _, key = await api_keys.create(ctx, account.id, credential_id=None, name="default", scopes=scopes)
    saved = await endpoints.save(ctx, account.id, url=endpoint.url)
    login = (credential.username, password)
    return Customer(account.id, f"mail@{domain}", key, login, saved.secret or "")


@contextlib.asynccontextmanager
async def open_customers(ctx: context.Context, count: int, chance: random.Random) -> AsyncIterator[Sequence[Customer]]:
    """Customers, and their endpoints for the time of the block."""
    async with contextlib.AsyncExitStack() as stack:
        customers = []
        for number in range(count):
            endpoint = await stack.enter_async_context(webhook_server.running(tls=False))
            customers.append(await open_customer(ctx, number, endpoint))
            endpoint.answer = answering(customers[-1], random.Random(chance.random()))
        yield customers
