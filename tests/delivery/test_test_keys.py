"""A test key on a whole service: over HTTP, with delivery under way, for a domain that has real mail hosts."""

import contextlib
from collections.abc import AsyncIterator

import httpx

from postroad.api import routes as api_routes
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.services.people import api_keys, credentials
from tests import asgi, dns_server
from tests.api import management
from tests.delivery import engine_harness

MESSAGE = {"from": "shop@example.com", "to": ["ada@gmail.com"], "subject": "Hi", "text": "x"}
READING = frozenset({callers.Permission.SEND, callers.Permission.READ})
ZONES: dns_server.Zones = {
    "gmail.com": {"MX": ["5 gmail-smtp-in.l.google.com."]},
    "gmail-smtp-in.l.google.com": {"A": ["127.0.0.1"]},
}


@contextlib.asynccontextmanager
async def client_of(harness: engine_harness.EngineHarness, authorization: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(asgi.of(management.serve(harness.ctx, api_routes.ROUTES)))
    headers = {"Authorization": f"Bearer {authorization}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://postroad.test", headers=headers) as client:
        yield client


async def new_key(harness: engine_harness.EngineHarness, mode: statuses.Mode) -> str:
    made = await api_keys.create(
        harness.ctx, harness.account_id, credential_id=None, name="CI", scopes=READING, mode=mode
    )
    return made[1]


async def test_a_test_key_sends_to_the_simulator_and_its_mail_is_kept_apart(database_url: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        # Nothing listens on the port: real mail would be deferred.
        harness = await stack.enter_async_context(engine_harness.running_engine(database_url, port=9, zones=ZONES))
        await credentials.create(harness.ctx, harness.account_id, "main")
        test = await stack.enter_async_context(client_of(harness, await new_key(harness, statuses.Mode.TEST)))
        live = await stack.enter_async_context(client_of(harness, await new_key(harness, statuses.Mode.LIVE)))
        token = await management.token(harness.ctx, harness.account_id, callers.Role.OWNER)
        owner = await stack.enter_async_context(client_of(harness, token))

        sent = await test.post("/emails", json=MESSAGE, headers={"Idempotency-Key": "1"})
        assert (sent.status_code, sent.json()["test"], sent.json()["credits_reserved"]) == (202, True, 0)
        await harness.settle(sent.json()["id"])
        shown = (await test.get(f"/emails/{sent.json()['id']}")).json()
        assert (shown["status"], shown["test"]) == ("delivered", True)
        assert shown["recipients"][0]["last_smtp_response"] == "2.0.0 OK: queued by the simulator"
        assert harness.dns.questions == []
        assert await harness.credits() == (0, 0)

        real = await live.post("/emails", json=MESSAGE, headers={"Idempotency-Key": "1"})
        assert real.status_code == 202
        assert real.json()["id"] != sent.json()["id"]
        assert "test" not in real.json()
        assert "test" not in (await live.get(f"/emails/{real.json()['id']}")).json()
        listed = (await owner.get("/v1/messages")).json()["messages"]
        assert [one["id"] for one in listed] == [real.json()["id"]]
        assert "test" not in listed[0]
        tests = (await owner.get("/v1/messages", params={"mode": "test"})).json()["messages"]
        assert [(one["id"], one["test"]) for one in tests] == [(sent.json()["id"], True)]
        details = (await owner.get(f"/v1/messages/{sent.json()['id']}")).json()
        assert (details["test"], details["attempts"][0]["host"]) == (True, "simulator.invalid")


async def test_a_test_key_cannot_read_live_messages(url: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        harness = await stack.enter_async_context(engine_harness.running_engine(url, port=9, zones=ZONES))
        await credentials.create(harness.ctx, harness.account_id, "main")
        test = await stack.enter_async_context(client_of(harness, await new_key(harness, statuses.Mode.TEST)))
        message_id = await harness.send("ada@gmail.com")
        assert (await test.get(f"/emails/{message_id}")).status_code == 404
