"""An analyst sees what became of messages and never what they say, wherever a page or the API shows something.

The same word is put into everything that is content, and every page and route is fetched. What a reader finds proves
that the walk would find it.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio

from postroad import context
from postroad.dashboard.framework import site as sites
from postroad.model.mail import send_request
from postroad.model.people import callers
from postroad.protocol.smtp import values
from postroad.services.messages import dev_inbox, saved_views
from postroad.services.templates import template_drafts, templates
from postroad.storage.people import accounts
from postroad.web import routing
from tests import accepted_mail, logged_requests, received_rows, webhook_rows
from tests.api.v1 import test_tenancy as tenancy
from tests.dashboard import browser_client, sample_account
from tests.dashboard import test_every_route as pages
from tests.dashboard.browser_client import Switch
from tests.permissions import surfaces
from tests.permissions.walks import name

WORD = "zq491823zq"
ENCODED = base64.b64encode(f"A file: {WORD}".encode()).decode()
RECIPIENT = "ada@to.example"
Answers = Mapping[str, httpx.Response]
# Where a reader finds it. A page that is not here any more would no longer be tested.
SHOWN = {
    "GET /approvals",
    "GET /approvals/{id}/request",
    "GET /emails/{id}",
    "GET /inbox",
    "GET /inbox/{id}",
    "GET /inbox/{id}/raw",
    "GET /messages",
    "GET /messages.csv",
    "GET /messages/{id}",
    "GET /messages/{id}/code",
    "GET /messages/{id}/raw",
    "GET /received",
    "GET /received/{id}",
    "GET /received/{id}/raw",
    "GET /recipients/{email}",
    "GET /requests/{id}",
    "GET /tail",
    "GET /templates",
    "GET /templates/{alias}",
    "GET /templates/{alias}/preview",
    "GET /templates/{alias}/versions",
    "GET /v1/inbound",
    "GET /v1/inbound/{id}",
    "GET /v1/inbound/{id}/raw",
    "GET /v1/inbox",
    "GET /v1/inbox/{id}/raw",
    "GET /v1/messages",
    "GET /v1/messages/{id}",
    "GET /v1/messages/{id}/raw",
    "GET /v1/requests/{id}",
    "GET /v1/templates",
    "GET /v1/templates/{alias}",
    "GET /v1/webhook/deliveries",
    "GET /v1/webhook/deliveries/{id}",
    "GET /v1/webhooks/{webhook}/deliveries",
    "GET /v1/webhooks/{webhook}/deliveries/{id}",
    "GET /webhooks/{webhook}/deliveries/{id}",
    "POST /v1/templates/{alias}/preview",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """The service with an account full of the word, and two people."""

    built: list[surfaces.Surface]
    things: dict[str, str]
    analyst: surfaces.Credential
    reader: surfaces.Credential

    async def ask(self, credential: surfaces.Credential, surface_name: str, path: str) -> httpx.Response:
        """Fetch one address."""
        (surface,) = [one for one in self.built if one.name == surface_name]
        async with surfaces.opened(surface) as client:
            return await client.get(path, headers=credential.headers(surface))

    async def walk(self, credential: surfaces.Credential) -> Answers:
        """Fetch everything, with the preview of the API, which reads although it is a POST."""
        answers: dict[str, httpx.Response] = {}
        for surface in self.built:
            async with surfaces.opened(surface) as client:
                for route in surface.routes:
                    is_preview = name(route) == "POST /v1/templates/{alias}/preview"
                    if (route.method != "GET" and not is_preview) or "/operator" in route.path:
                        continue
                    path = self._path(surface, route)
                    headers = credential.headers(surface)
                    body: dict[str, str] | None = {} if is_preview else None
                    answers[name(route)] = await client.request(route.method, path, headers=headers, json=body)
        return answers

    def _path(self, surface: surfaces.Surface, route: surfaces.Route) -> str:
        if surface.name == surfaces.PAGES:
            return pages.address(route, self.things)
        kind = tenancy.NAMED.get((route.method, route.path)) or next(
            (kind for part, kind in KINDS.items() if part in route.path), "message"
        )
        path = route.path
        for parameter, thing in zip(routing.parameters(path), self.things[kind].split("/"), strict=False):
            path = path.replace(f"{{{parameter}}}", thing)
        return str(path)


# What the path of a route of the API names, if the walk of the management routes does not say it.
KINDS = {"/templates": "template", "/inbox": "received", "/webhooks": "webhook", "/domains": "domain"}


async def fill(ctx: context.Context, account_id: str, mail: dev_inbox.Inbox) -> dict[str, str]:
    """One of everything, with the word in all that is content; the ids by kind."""
    things = await sample_account.create_sample_data(ctx, account_id, domain="mine.example")
    await templates.put(ctx, account_id, "greeting", subject=f"{WORD} now", text=WORD, html=f"<p>{WORD}</p>")
    content = templates.Content(f"{WORD} soon", WORD, f"<b>{WORD}</b>", sample=json.dumps({"name": WORD}))
    await template_drafts.save(ctx, account_id, "greeting", content)
    message_id = await accepted_mail.accept(
        ctx,
        account_id,
        sender="shop@mine.example",
        to=(RECIPIENT,),
        subject=f"Code {WORD}",
        text=f"It is {WORD}",
        html=f"<p>It is {WORD}</p>",
        headers={"X-Code": WORD},
        metadata={"code": WORD},
        attachments=(send_request.Attachment(filename=f"{WORD}.txt", content=ENCODED),),
    )
    body = json.dumps({"type": "email.delivered", "data": {"to": RECIPIENT, "subject": WORD}}).encode()
    delivery = await webhook_rows.put(ctx, account_id, message_id=message_id, body=body)
    await webhook_rows.put_attempt(ctx, delivery, 1, status_code=500, response_body=f"got {WORD}")
    raw = f"From: a@b.example\r\nTo: c@d.example\r\nSubject: {WORD}\r\n\r\n{WORD}\r\n".encode()
    mail_in = await received_rows.put(ctx, account_id, content=raw, subject=WORD, email_id=message_id)
    received = mail.add(values.MailTransaction("a@b.example", ("c@d.example",), (raw,))).id
    return {
        **things,
        "approval": await sample_account.ask_for_approval(ctx, account_id, things["api_key"], WORD, key="k2"),
        "request": logged_requests.note(ctx, account_id, body=json.dumps({"subject": WORD}).encode()),
        "message": message_id,
        "ended_message": message_id,
        "template": "greeting",
        "suppression": RECIPIENT,
        "webhook_delivery": delivery.id,
        "delivery_of_webhook": f"{things['webhook']}/{delivery.id}",
        "received": received,
        "received_mail": mail_in.id,
    }


async def open_scene(ctx: context.Context, site: sites.Site, mail: dev_inbox.Inbox, account_id: str) -> Scene:
    things = await fill(ctx, account_id, mail)
    built = surfaces.build(ctx, site)
    analyst, reader = [
        await surfaces.new_credential(ctx, built, account_id, role)
        for role in (callers.Role.ANALYST, callers.Role.READ_ONLY)
    ]
    colleague = await browser_client.person(ctx, account_id, "colleague@mine.example", callers.Role.OWNER)
    return Scene(built, {**things, "person": colleague.id}, analyst, reader)


@pytest_asyncio.fixture
async def scene(
    ctx: context.Context, site: sites.Site, switch: Switch, mail: dev_inbox.Inbox, mine: accounts.Account
) -> Scene:
    switch.stopping = True
    return await open_scene(ctx, site, mail, mine.id)


async def check_hidden(scene: Scene, shown: set[str]) -> Answers:
    """The analyst sees the word nowhere, and the reader at least where it is said to be shown."""
    answers = await scene.walk(scene.analyst)
    leaks = [one for one, answer in answers.items() if WORD in answer.text or ENCODED[:20] in answer.text]
    assert leaks == []
    assert {answer.status_code for answer in answers.values()} <= {200, 303, 403, 404, 422}
    assert {one for one, answer in (await scene.walk(scene.reader)).items() if WORD in answer.text} >= shown
    return answers


async def test_the_word_is_nowhere(scene: Scene) -> None:
    answers = await check_hidden(scene, SHOWN)
    # Addresses and states are there.
    for one in (
        "GET /messages",
        "GET /messages/{id}",
        "GET /v1/messages/{id}",
        "GET /emails/{id}",
        "GET /messages.csv",
    ):
        assert answers[one].status_code == 200, one
        assert RECIPIENT in answers[one].text, one
        assert "Subject hidden" in answers[one].text, one


async def test_members_that_are_content_are_empty_over_the_api(scene: Scene) -> None:
    message = (await scene.ask(scene.analyst, "api", f"/v1/messages/{scene.things['message']}")).json()
    hidden = {one: message.get(one) for one in ("subject", "headers", "attachments", "metadata")}
    assert hidden == {"subject": "Subject hidden", "headers": {}, "attachments": [], "metadata": None}
    path = f"/v1/webhook/deliveries/{scene.things['webhook_delivery']}"
    delivery = (await scene.ask(scene.analyst, "api", path)).json()["delivery"]
    assert (delivery["request_body"], delivery["attempts"][0]["response_body"]) == ("", None)
    assert delivery["attempts"][0]["status_code"] == 500


@pytest.mark.parametrize(
    "search", [WORD, f"-{WORD}", f"to:{RECIPIENT} OR {WORD}", f"metadata.code:{WORD}", f"-metadata.code:{WORD}"]
)
async def test_it_cannot_be_guessed_by_searching(scene: Scene, search: str) -> None:
    encoded = httpx.QueryParams({"search": search})
    message_id = scene.things["message"]
    for surface, path in (
        ("api", "/v1/messages"),
        ("pages", "/messages"),
        ("pages", "/tail"),
        ("pages", "/messages.csv"),
    ):
        assert message_id in (await scene.ask(scene.analyst, surface, f"{path}?search=to:{RECIPIENT}")).text, path
        answer = await scene.ask(scene.analyst, surface, f"{path}?{encoded}")
        assert answer.status_code == 400, path
        assert "subjects and metadata are hidden, and cannot be searched" in answer.text, path
        assert message_id not in answer.text, path
    found = await scene.ask(scene.analyst, "pages", f"/find?{httpx.QueryParams({'q': search})}")
    assert message_id not in found.text
    filtered = await scene.ask(scene.analyst, "api", f"/v1/messages?metadata=code:{WORD}")
    assert (filtered.status_code, filtered.json()["error"]) == (
        400,
        "metadata: hidden from your role, and cannot be searched",
    )


async def test_saved_views_that_search_content_are_not_shown(
    ctx: context.Context, scene: Scene, mine: accounts.Account
) -> None:
    await saved_views.save(ctx, mine.id, name="Codes", search=f"{WORD} status:queued")
    await saved_views.save(ctx, mine.id, name="Waiting", search="status:queued")
    for credential, is_shown in ((scene.analyst, False), (scene.reader, True)):
        for path in ("/messages", "/find?q=Co", "/find?q=Wa"):
            page = (await scene.ask(credential, "pages", path)).text
            assert ("Codes" in page) is (is_shown and not path.endswith("Wa")), path
            assert ("Waiting" in page) is (not path.endswith("Co")), path


async def test_templates_are_not_found_by_their_text(scene: Scene) -> None:
    assert "greeting" in (await scene.ask(scene.reader, "pages", f"/find?q={WORD}")).text
    assert "greeting" not in (await scene.ask(scene.analyst, "pages", f"/find?q={WORD}")).text
    listed = (await scene.ask(scene.analyst, "api", "/v1/templates")).json()["templates"]
    assert [(one["alias"], one["subject"]) for one in listed] == [
        ("furniture", "Subject hidden"),
        ("greeting", "Subject hidden"),
    ]
