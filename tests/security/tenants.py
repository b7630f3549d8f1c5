"""Customers of one service who have everything: API keys, users and browsers, and one marked record of every kind.

Only what an operator does is done by services. All else goes through the listeners, as a customer would do it, and
every secret that a listener has returned is kept, so that a test can look for it where it must not be.
"""

import base64
import contextlib
import re
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from postroad.model.people import callers
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import saved_views
from postroad.services.people import users
from tests import accepted_mail, received_rows
from tests.dashboard import sample_account
from tests.delivery import engine_harness, parts
from tests.security.whole_service import WholeService
from tests.submission import submission_server

PASSWORD: Final = "a sentence of the owner alone"
HOOK: Final = "https://hooks.example.org/hook"
CSRF_FIELD: Final = re.compile(r'name="csrf_token" value="([0-9a-f]+)"')


@dataclass(frozen=True, slots=True)
class Tenant:
    """One customer. Everything that is theirs holds `mark`; `things` are ids by kind, as the walks of routes ask."""

    mark: str
    account_id: str
    email: str
    domain: str
    http: httpx.AsyncClient
    browser: httpx.AsyncClient
    csrf_token: str = field(repr=False)
    token: str = field(repr=False)
    things: dict[str, str]
    secrets: list[str] = field(repr=False)

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """A request of the user who owns the account."""
        headers = {**self.bearer, **more.pop("headers", {})}
        return await self.http.request(method, path, headers=headers, **more)

    async def do(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """A request that has to succeed; its answer."""
        answer = await self.ask(method, path, **more)
        assert answer.is_success, (method, path, answer.text)
        return dict(answer.json()) if answer.content else {}

    async def send(self, **members: Any) -> dict[str, Any]:
        """A message of theirs."""
        body = {
            "from": f"{self.mark} <shop@{self.domain}>",
            "to": f"{self.mark}@example.net",
            "subject": f"{self.mark} order",
            "text": f"{self.mark} is on its way.",
        }
        key = {"Idempotency-Key": uuid.uuid4().hex}
        return await self.do("POST", "/emails", json={**body, **members}, headers=key)


def client(service: WholeService, **more: Any) -> httpx.AsyncClient:
    """A client of the HTTP API, with no credential unless `more` brings one."""
    host, port = service.addresses["http"]
    return httpx.AsyncClient(
        base_url=f"http://{host}:{port}", timeout=submission_server.TIMEOUT_SECONDS, verify=service.trusting, **more
    )


async def log_in(service: WholeService, email: str, password: str = PASSWORD) -> httpx.Response:
    """What the API says to an email and a password."""
    async with client(service) as http:
        return await http.post("/v1/auth/login", json={"email": email, "password": password})


@contextlib.asynccontextmanager
async def settled(service: WholeService, mark: str) -> AsyncIterator[Tenant]:
    """A customer with one of everything, and nothing under way."""
    domain, email = f"{mark}.example", f"owner@{mark}.example"
    account = await accounts.create(service.ctx, f"{mark} Ltd")
    await accepted_mail.allow_sending(service.ctx, account.id, domain=domain, amount=1_000_000)
    await users.create(service.ctx, account.id, email=email, password=PASSWORD, role=callers.Role.OWNER)
    token = (await log_in(service, email)).json()["token"]
    async with client(service) as http, client(service) as browser:
        answer = await browser.post("/login", data={"email": email, "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        found = CSRF_FIELD.search((await browser.get("/profile")).text)
        assert found is not None
        cookies = [cookie.value or "" for cookie in browser.cookies.jar]
        tenant = Tenant(
            mark, account.id, email, domain, http, browser, found[1], token, {}, [PASSWORD, token, found[1], *cookies]
        )
        await _furnish(tenant)
        view = await saved_views.save(service.ctx, account.id, name=f"{mark} view", search=f'"{mark}"')
        tenant.things["view"] = view.id
        route = await received_rows.route(service.ctx, account.id, f"{mark}@in.{domain}")
        mail = await received_rows.put(
            service.ctx, account.id, route_id=route.id, subject=f"{mark} question", sender=f"{mark}@example.net"
        )
        tenant.things.update({"inbound_route": route.id, "received_mail": mail.id})
        # Of a login of its own: that of the owner logs in with the password alone.
        tenant.things["passkey"] = await sample_account.add_passkey(service.ctx, f"lgn_{mark}", mark=mark)
        tenant.things["approval"] = await sample_account.ask_for_approval(
            service.ctx, account.id, tenant.things["api_key"], mark
        )
        yield tenant


async def _furnish(tenant: Tenant) -> None:
    mark, do = tenant.mark, tenant.do
    credential = await do("POST", "/v1/credentials", json={"name": f"{mark} credential"})
    key = await do("POST", "/v1/api-keys", json={"name": f"{mark} key", "scopes": ["send", "read"]})
    hook = await do("PUT", "/v1/webhook", json={"url": f"{HOOK}/{mark}"})
    rotated = await do("POST", "/v1/webhook/rotate-secret", json={"overlap_hours": 1})
    invited = await do("POST", "/v1/team", json={"email": f"jo@{tenant.domain}", "role": "developer"})
    body = {"subject": f"{mark} {{{{name}}}}", "text": f"{mark} {{{{name}}}}", "html": f"<p>{mark} {{{{name}}}}</p>"}
    await do("PUT", f"/v1/templates/{mark}", json=body)
    suppressed = {"email": f"{mark}-never@example.net", "reason": f"{mark} asked"}
    await do("POST", "/v1/suppressions", json=suppressed)
    (domain,) = (await do("GET", "/v1/domains"))["domains"]
    shown = await arrived(tenant, (await tenant.send())["id"])
    (endpoint,) = (await do("GET", "/v1/webhooks"))["webhooks"]
    (event,) = (await do("GET", "/v1/webhook/deliveries"))["deliveries"]
    refused = await tenant.ask("POST", "/v1/suppressions", json={"email": mark, "reason": mark})
    assert refused.status_code == 400, refused.text
    listener = await do("POST", "/v1/webhook-listeners", json={"events": ["account.warned"]})
    sessions = (await do("GET", "/v1/auth/sessions"))["sessions"]
    username, password = credential["credential"]["username"], credential["password"]
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    login = base64.b64encode(f"\0{username}\0{password}".encode()).decode()
    link = invited["link"].rpartition("/")[2]
    secrets = (password, pair, login, key["secret"], hook["secret"], rotated["secret"], listener["secret"], link)
    tenant.secrets.extend(secrets)
    tenant.things.update(
        api_key=key["api_key"]["id"],
        credential=credential["credential"]["id"],
        domain=domain["id"],
        message=shown["id"],
        ended_message=shown["id"],
        person=invited["user"]["id"],
        session=next(one["id"] for one in sessions if one["kind"] == "browser"),
        recipient=shown["recipients"][0]["id"],
        request=refused.headers["x-request-id"],
        suppression=suppressed["email"],
        template=mark,
        webhook=endpoint["id"],
        webhook_delivery=event["id"],
        delivery_of_webhook=f"{endpoint['id']}/{event['id']}",
        listener=listener["webhook"]["id"],
    )


async def arrived(tenant: Tenant, message_id: str) -> dict[str, Any]:
    """A message of theirs, when everybody has it."""
    found: dict[str, Any] = {}

    async def is_final() -> bool:
        found.update(await tenant.do("GET", f"/v1/messages/{message_id}"))
        return all(one["status"] in engine_harness.FINAL for one in found["recipients"])

    await parts.until(is_final)
    return found


def assert_nothing_of(other: Tenant, answer: httpx.Response, *, asked: str = "") -> None:
    """An answer holds nothing of another customer but what was asked with."""
    text = answer.text.replace(asked, "") if asked else answer.text
    strange = [word for word in (other.mark, other.account_id, *other.things.values()) if word in text]
    assert strange == [], (answer.url, strange)
