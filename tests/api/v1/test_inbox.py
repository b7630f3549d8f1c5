"""`/v1/inbox`: what the simulator has taken, for everybody who may read mail in this installation."""

import contextlib
import os
import time
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from postroad import context
from postroad.api import authentication
from postroad.api import routes as api_routes
from postroad.api.v1 import inbox as v1_inbox
from postroad.protocol.smtp import values
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import dev_inbox
from postroad.services.people import authentication as caller_authentication
from postroad.services.people import credentials
from postroad.web import application
from tests import asgi, contexts
from tests.api import app_server
from tests.api.management import open_account

CONTENT = b"Subject: =?utf-8?b?R3LDvMOfZQ==?=\r\n\r\nHello\r\n"


@pytest.fixture
def mail(clock: contexts.Clock) -> dev_inbox.Inbox:
    return dev_inbox.Inbox(clock=clock, entropy=os.urandom)


@pytest.fixture
def served(ctx: context.Context, mail: dev_inbox.Inbox) -> application.Application[context.Context]:
    """The whole API of a development installation."""
    return application.Application(
        ctx,
        (*api_routes.ROUTES, *v1_inbox.routes(mail)),
        authenticate=authentication.authenticate,
        require=caller_authentication.require,
        clock=lambda: time.time_ns() // 1_000,
        entropy=os.urandom,
        log=app_server.CapturedLog().logger(),
    )


@contextlib.asynccontextmanager
async def client(
    served: application.Application[context.Context], auth: tuple[str, str] | None = None, key: str | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    transport = httpx.ASGITransport(asgi.of(served))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://postroad.test", auth=auth, headers=headers, timeout=60
    ) as opened:
        yield opened


@pytest_asyncio.fixture
async def program(
    ctx: context.Context, served: application.Application[context.Context]
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the SMTP credential of an account of its own."""
    account = await accounts.create(ctx, "Program")
    credential, password = await credentials.create(ctx, account.id, "tests")
    async with client(served, auth=(credential.username, password)) as opened:
        yield opened


def deliver(mail: dev_inbox.Inbox, *recipients: str) -> dev_inbox.CapturedMessage:
    return mail.add(values.MailTransaction("a@example.org", recipients, (CONTENT,)))


async def test_received_mail_is_listed_newest_first_with_the_documented_members(
    mail: dev_inbox.Inbox, program: httpx.AsyncClient, clock: contexts.Clock
) -> None:
    first = deliver(mail, "jo@example.net", "jane@example.net")
    clock.pass_seconds(1)
    second = deliver(mail, "joe@example.net")
    answer = await program.get("/v1/inbox")
    assert answer.status_code == 200
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert [message["id"] for message in answer.json()["messages"]] == [second.id, first.id]
    assert answer.json()["messages"][1] == {
        "id": first.id,
        "received_at": "2027-01-15T08:00:00.000Z",
        "envelope_from": "a@example.org",
        "envelope_to": ["jo@example.net", "jane@example.net"],
        "subject": "Grüße",
        "size": len(CONTENT),
    }


async def test_a_list_for_one_recipient_is_found_in_whatever_case(
    mail: dev_inbox.Inbox, program: httpx.AsyncClient
) -> None:
    wanted = deliver(mail, "other@example.net", "Jo@example.net")
    deliver(mail, "joe@example.net")
    answer = await program.get("/v1/inbox", params={"to": "jO@EXAMPLE.net"})
    assert [message["id"] for message in answer.json()["messages"]] == [wanted.id]
    assert (await program.get("/v1/inbox", params={"to": "nobody@example.net"})).json()["messages"] == []


async def test_the_bytes_come_back_as_they_were_received(mail: dev_inbox.Inbox, program: httpx.AsyncClient) -> None:
    received = deliver(mail, "jo@example.net")
    answer = await program.get(f"/v1/inbox/{received.id}/raw")
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["content-type"] == "message/rfc822"
    assert answer.headers["content-disposition"] == f'attachment; filename="{received.id}.eml"'


async def test_an_unknown_message_is_not_found(program: httpx.AsyncClient) -> None:
    answer = await program.get("/v1/inbox/inb_unknown/raw")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_the_inbox_is_emptied_by_api_keys_and_users_but_not_by_those_who_may_only_read(
    ctx: context.Context,
    mail: dev_inbox.Inbox,
    program: httpx.AsyncClient,
    served: application.Application[context.Context],
) -> None:
    async with open_account(ctx, served, "Mine") as clients:
        deliver(mail, "jo@example.net")
        assert (await clients.reader.delete("/v1/inbox")).status_code == 403
        assert len((await clients.reader.get("/v1/inbox")).json()["messages"]) == 1
        assert (await clients.owner.delete("/v1/inbox")).status_code == 204
        assert (await clients.owner.get("/v1/inbox")).json()["messages"] == []
        deliver(mail, "jo@example.net")
        assert (await program.delete("/v1/inbox")).status_code == 204
        assert mail.newest_first() == []


async def test_the_built_in_endpoint_takes_what_comes_and_keeps_nothing(
    mail: dev_inbox.Inbox, served: application.Application[context.Context]
) -> None:
    json = {"Content-Type": "application/json"}
    async with client(served) as sender:
        taken = await sender.post("/v1/inbox/webhook", content=b'{"type": "email.delivered"}', headers=json)
        assert (taken.status_code, taken.content) == (204, b"")
        assert mail.newest_first() == []
        large = await sender.post("/v1/inbox/webhook", content=b"x" * (2 * 1024 * 1024 + 1), headers=json)
        assert (large.status_code, large.json()["code"]) == (413, "payload_too_large")
        assert (await sender.get("/v1/inbox/webhook")).status_code == 405
