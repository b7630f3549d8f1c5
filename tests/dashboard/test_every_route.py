"""What holds for every route of the dashboard, read off the table of routes: a new page is covered from its first day.

Nobody gets in without a session, who may only look changes nothing, no form is done that is not ours, things of another
account are like unknown ones, and every answer has the header fields that keep a browser from running what is not ours.
"""

import re
from collections.abc import Mapping

import httpx
import msgspec
import pytest
from msgspec import inspect

from postroad import config, context, errors
from postroad.dashboard import application
from postroad.dashboard.framework import forms
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.services.messages import dev_inbox
from postroad.storage.operations import processes
from postroad.web import routing
from tests import webhook_rows
from tests.dashboard import sample_account
from tests.dashboard.browser_client import Browser, Switch

Route = routing.Route[context.Context]
JSON = {"Accept": "application/json"}
PUBLIC = {
    ("GET", "/login"),
    ("POST", "/login"),
    ("GET", "/login/second-factor"),
    ("POST", "/login/second-factor"),
    ("POST", "/login/passkey"),
    ("POST", "/login/passkey/options"),
    ("POST", "/login/second-factor/passkey"),
    ("POST", "/login/second-factor/passkey/options"),
    ("GET", "/login/sso"),
    ("POST", "/login/sso"),
    ("GET", "/notices/{token}"),
    ("POST", "/notices/{token}"),
    ("GET", "/unsubscribe/{token}"),
    ("POST", "/unsubscribe/{token}"),
    ("POST", "/unsubscribe/{token}/choice"),
    ("GET", "/password/{token}"),
    ("POST", "/password/{token}"),
    ("GET", "/sso/{connection}/callback"),
}
# The kind of thing that a path names, by how the path begins; the longest beginning counts.
KINDS = {
    "/approvals/": "approval",
    "/credentials/": "credential",
    "/domains/": "domain",
    "/inbox/": "received",
    "/keys/": "api_key",
    "/messages/": "message",
    "/operator/accounts/": "account",
    "/operator/jobs/": "job",
    "/operator/operators/": "person",
    "/operator/providers/": "provider",
    "/operator/sources/": "source",
    "/profile/passkeys/": "passkey",
    "/profile/sessions/": "session",
    "/received/": "received_mail",
    "/received/routes/": "inbound_route",
    "/recipients/": "suppression",
    "/requests/": "request",
    "/sso/": "account",
    "/suppressions/": "suppression",
    "/team/": "person",
    "/templates/": "template",
    "/views/": "view",
    "/webhooks/": "webhook",
    "/webhooks/{webhook}/deliveries/": "webhook_delivery",
}
# Members of paths and forms that name a second thing, and its kind.
ALSO = {
    "approval_id": "approval",
    "credential_id": "credential",
    "recipient": "recipient",
    "recipient_id": "recipient",
    "session": "session",
    "user_id": "person",
    "webhook": "webhook",
}
UNKNOWN = {
    "account": "acc_" + "0" * 28,
    "api_key": "key_" + "0" * 28,
    "approval": "apr_" + "0" * 28,
    "credential": "cred_" + "0" * 28,
    "domain": "dom_" + "0" * 28,
    "inbound_route": "rt_" + "0" * 28,
    "message": "em_" + "0" * 28,
    "job": "job_" + "0" * 28,
    "passkey": "psk_" + "0" * 28,
    "person": "usr_" + "0" * 28,
    "provider": "no such host",
    "source": "no such source",
    "received": "rcv_" + "0" * 28,
    "received_mail": "in_" + "0" * 28,
    "recipient": "rcp_" + "0" * 28,
    "request": "req_" + "0" * 28,
    "session": "tok_" + "0" * 28,
    "suppression": "nobody@example.net",
    "template": "nothing-here",
    "view": "view_" + "0" * 28,
    "webhook": "whk_" + "0" * 28,
    "webhook_delivery": "whd_" + "0" * 28,
}
# What fits a field of this name; anything else is "x" or the first of its choices.
EXAMPLES = {
    "current_password": "correct horse battery",
    "domain": "new.example",
    "email": "new@example.net",
    "from": "shop@mine.example",
    "new_password": "another long sentence",
    "password": "another long sentence",
    "proof": "correct horse battery",
    # Those who walk have no second factor.
    "required": "false",
    "to": "new@example.net",
    "time_zone": "Europe/Berlin",
    "url": webhook_rows.URL,
    "html": "<p>x</p>",
    "kind": "credits.low",
}
# The inbox of the simulator belongs to the installation, which has one account then; operators see all accounts.
WITHOUT_ACCOUNT = ("/inbox", "/operator")
LINK = re.compile(r'<a [^>]*href="(/(?!assets/)[^"#]*)')
FORM = re.compile(r'<form [^>]*method="post"[^>]* action="([^"]+)"')
INLINE = re.compile(
    rb"<script(?![^>]*\bsrc=)|\son\w+\s*=|\sstyle\s*=|javascript:|<style|<base|http-equiv", re.IGNORECASE
)


def is_page(route: Route) -> bool:
    return not route.path.startswith("/assets/")


def kind_of(route: Route) -> str | None:
    beginnings = [beginning for beginning in KINDS if route.path.startswith(beginning)]
    return KINDS[max(beginnings, key=len)] if beginnings and routing.parameters(route.path) else None


def names_things(route: Route) -> bool:
    """Whether an id of something stands in the path or in the form."""
    if kind_of(route) is not None or not isinstance(route.body, type) or not issubclass(route.body, forms.Form):
        return kind_of(route) is not None
    return any(field.name in ALSO for field in msgspec.structs.fields(route.body))


def address(route: Route, things: Mapping[str, str]) -> str:
    """The route's path with the names of these things in it."""
    path, kind = route.path.replace("{starter}", "welcome"), kind_of(route)
    for name in routing.parameters(route.path):
        named = ALSO.get(name) or (kind if f"/{{{name}}}" in path and kind else None)
        value = things[named] if named and (name in ALSO or name in ("id", "alias", "email", "name")) else "0"
        path = path.replace(f"{{{name}}}", value)
    return path


def filled(route: Route, things: Mapping[str, str]) -> dict[str, str]:
    """The route's form with something in each field that it needs."""
    assert isinstance(route.body, type)
    assert issubclass(route.body, forms.Form)
    info = inspect.type_info(route.body)
    assert isinstance(info, inspect.StructType)
    needed = [field for field in info.fields if field.required or field.name in ALSO]
    return {field.encode_name: _value(field, things) for field in needed}


def _value(field: inspect.Field, things: Mapping[str, str]) -> str:
    if field.name in ALSO:
        return things[ALSO[field.name]]
    if field.encode_name in EXAMPLES:
        return EXAMPLES[field.encode_name]
    match field.type:
        case inspect.EnumType(cls=choices):
            return str(next(iter(choices)).value)
        case inspect.LiteralType(values=values):
            return str(values[0])
        case inspect.IntType():
            return "1"
        case inspect.BoolType():
            return "true"
    return "x"


@pytest.fixture
def routes(site: sites.Site) -> list[Route]:
    return [route for route in application.routes(site) if is_page(route)]


async def furnish(ctx: context.Context, browser: Browser, mail: dev_inbox.Inbox, *, domain: str) -> dict[str, str]:
    assert browser.user is not None
    things = await sample_account.create_sample_data(ctx, browser.account_id, domain=domain)
    job = processes.Job(
        ctx.new_id(identifiers.JOB, now=0), "queue.retry", "all mail", processes.RUNNING, 0, None, "null", "", 0, 0
    )
    async with ctx.store.transaction() as tx:
        await processes.insert_job(tx, job)
    installation = {"account": browser.account_id, "job": job.id, "provider": "google", "source": "out_1"}
    ours = (config.Source(name="out_1", address="192.0.2.1"),)
    msgspec.structs.force_setattr(ctx.settings, "sources", ours)
    passkey = await sample_account.add_passkey(ctx, browser.user.login_id or "", mark=domain)
    assert browser.session is not None
    people = {"passkey": passkey, "person": browser.user.id, "session": browser.session.row.id}
    return {**things, **installation, **people, "received": sample_account.receive(mail)}


async def ask(
    browser: Browser, route: Route, things: Mapping[str, str], *, csrf_token: str | None = None, **headers: str
) -> httpx.Response:
    data = None
    if route.method == "POST":
        data = filled(route, things) | ({} if csrf_token is None else {"csrf_token": csrf_token})
    return await browser.client.request(route.method, address(route, things), data=data, headers=headers)


def user_of(route: Route, browser: Browser, operator: Browser) -> Browser:
    """Who may open it."""
    return operator if route.permission is callers.Permission.OPERATE else browser


def describe(route: Route, response: httpx.Response) -> str:
    return f"{route.method} {route.path}: {response.status_code} {response.text[:200]}"


def test_every_route_belongs_to_a_kind_that_is_walked(routes: list[Route]) -> None:
    assert {(route.method, route.path) for route in routes if route.permission is None} == PUBLIC
    strange = [route.path for route in routes if routing.parameters(route.path) and kind_of(route) is None]
    starters = {"/template/new/{starter}", "/template/new/{starter}/picture"}
    tokens = {"/notices/{token}", "/password/{token}", "/unsubscribe/{token}", "/unsubscribe/{token}/choice"}
    assert set(strange) == tokens | starters
    assert {route.method for route in routes} == {"GET", "POST"}


def test_every_change_is_a_form_with_a_word_and_a_right(routes: list[Route]) -> None:
    changes = [route for route in routes if route.method == "POST" and route.permission is not None]
    assert len(changes) > 5
    for route in changes:
        assert isinstance(route.body, type), route.path
        assert issubclass(route.body, forms.Form), route.path
        assert route.body_type == routing.FORM
    # These are everybody's own, whatever the role.
    harmless = {route.path for route in changes if route.permission is callers.Permission.VIEW}
    assert {"/logout", "/profile/password", "/profile/token"} <= harmless
    others = harmless - {path for path in harmless if path.startswith(("/logout", "/profile/", "/confirm"))}
    # A look of an operator changes nothing but what they see.
    assert others == {"/messages/{id}/view-as", "/switch"}


async def test_nobody_gets_in_without_a_session(
    ctx: context.Context,
    mail: dev_inbox.Inbox,
    routes: list[Route],
    settings: config.Settings,
    browser: Browser,
    nobody: Browser,
) -> None:
    things = await furnish(ctx, browser, mail, domain="mine.example")
    before = await sample_account.dump(settings.database.url)
    for route in routes:
        if route.permission is None:
            continue
        answer = await ask(nobody, route, things, csrf_token=browser.csrf_token)
        assert answer.status_code == 303, describe(route, answer)
        assert answer.headers["location"].startswith("/login"), describe(route, answer)
        answer = await ask(nobody, route, things, csrf_token=browser.csrf_token, **JSON)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), describe(route, answer)
    assert await sample_account.dump(settings.database.url) == before


async def test_who_may_only_look_changes_nothing(
    ctx: context.Context,
    mail: dev_inbox.Inbox,
    routes: list[Route],
    settings: config.Settings,
    browser: Browser,
    reader: Browser,
) -> None:
    things = await furnish(ctx, browser, mail, domain="mine.example")
    before = await sample_account.dump(settings.database.url)
    refused = 0
    for route in routes:
        if route.permission not in (None, *callers.ROLE_PERMISSIONS[callers.Role.READ_ONLY]):
            answer = await ask(reader, route, things, csrf_token=reader.csrf_token)
            assert answer.status_code == 403, describe(route, answer)
            assert answer.headers["x-request-id"] in answer.text
            refused += 1
    assert refused > 5
    assert await sample_account.dump(settings.database.url) == before


async def test_a_form_that_is_not_ours_changes_nothing(
    ctx: context.Context,
    mail: dev_inbox.Inbox,
    routes: list[Route],
    settings: config.Settings,
    browser: Browser,
    operator: Browser,
    stranger: Browser,
) -> None:
    things = await furnish(ctx, browser, mail, domain="mine.example")
    before = await sample_account.dump(settings.database.url)
    for route in routes:
        if route.method != "POST" or route.permission is None:
            continue
        user = user_of(route, browser, operator)
        for csrf_token in ("", "0" * 64, stranger.csrf_token):
            answer = await ask(user, route, things, csrf_token=csrf_token)
            assert answer.status_code == 403, describe(route, answer)
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            answer = await ask(user, route, things, csrf_token=user.csrf_token, **headers)
            assert answer.status_code == 403, describe(route, answer)
        plain = {"Content-Type": "text/plain"}
        answer = await user.client.post(address(route, things), content=f"csrf_token={user.csrf_token}", headers=plain)
        assert answer.status_code == 400, describe(route, answer)
    assert await sample_account.dump(settings.database.url) == before


async def test_a_thing_of_another_account_is_like_an_unknown_one(
    ctx: context.Context,
    mail: dev_inbox.Inbox,
    routes: list[Route],
    settings: config.Settings,
    browser: Browser,
    stranger: Browser,
) -> None:
    foreign = await furnish(ctx, stranger, mail, domain="theirs.example")
    before = await sample_account.dump(settings.database.url)
    for route in routes:
        if not names_things(route) or route.path.startswith(WITHOUT_ACCOUNT) or route.permission is None:
            continue
        of_foreign = await ask(browser, route, foreign, csrf_token=browser.csrf_token, **JSON)
        of_unknown = await ask(browser, route, UNKNOWN, csrf_token=browser.csrf_token, **JSON)
        assert of_foreign.status_code == of_unknown.status_code == 404, describe(route, of_foreign)
        assert of_foreign.json()["error"] == of_unknown.json()["error"]
    assert await sample_account.dump(settings.database.url) == before


async def test_every_page_shows_ones_own_things_and_runs_nothing_of_others(
    ctx: context.Context,
    mail: dev_inbox.Inbox,
    routes: list[Route],
    switch: Switch,
    browser: Browser,
    operator: Browser,
) -> None:
    things = await furnish(ctx, browser, mail, domain="mine.example")
    switch.stopping = True
    for route in routes:
        if route.method != "GET" or route.permission is None:
            continue
        user = user_of(route, browser, operator)
        answer = await ask(user, route, things)
        # A part of a message that this one does not have is nowhere.
        if len(routing.parameters(route.path)) <= 1:
            assert answer.status_code == 200, describe(route, answer)
        assert_safe(answer, describe(route, answer))
        head = await user.client.head(address(route, things))
        assert (head.status_code, head.content) == (answer.status_code, b""), describe(route, head)
        if "sandbox" not in answer.headers["content-security-policy"] and "attachment" not in str(answer.headers):
            assert not INLINE.search(quoted(answer)), (route.path, INLINE.search(quoted(answer)))


async def test_links_lead_somewhere_and_forms_are_shown_to_those_who_may_send_them(
    ctx: context.Context,
    mail: dev_inbox.Inbox,
    routes: list[Route],
    switch: Switch,
    browser: Browser,
    member: Browser,
    analyst: Browser,
    reader: Browser,
    operator: Browser,
) -> None:
    things = await furnish(ctx, browser, mail, domain="mine.example")
    switch.stopping = True
    table: routing.Table[Route] = routing.Table()
    for route in routes:
        table.add(route.method, route.path, target=route)
    table.add("GET", "/docs", target=next(route for route in routes if route.permission is None))
    permissions = callers.ROLE_PERMISSIONS
    reads = permissions[callers.Role.READ_ONLY]
    people = {
        browser: permissions[callers.Role.OWNER],
        member: permissions[callers.Role.DEVELOPER],
        analyst: permissions[callers.Role.ANALYST],
        reader: reads,
        operator: reads | callers.OPERATOR_PERMISSIONS,
    }
    wrong: set[str] = set()
    for route in routes:
        if route.method != "GET" or route.permission is None or "/preview" in route.path:
            continue
        for who, granted in people.items():
            if route.permission not in granted:
                continue
            text = (await ask(who, route, things)).text
            for method, path in [("GET", path) for path in LINK.findall(text)] + [
                ("POST", path) for path in FORM.findall(text)
            ]:
                found = has(table, method, path)
                if found is None or found.permission not in (None, *granted):
                    wrong.add(f"{route.path} shows {method} {path} to {who.user}")
    assert wrong == set()


def has(table: routing.Table[Route], method: str, path: str) -> Route | None:
    """The route at an address, if there is one."""
    try:
        return table.find(method, path.partition("?")[0].encode())[0]
    except errors.PostroadError:
        return None


def quoted(answer: httpx.Response) -> bytes:
    """A page without its text and its values: the markup that a browser would act on."""
    if not answer.headers.get("content-type", "").startswith("text/html"):
        return b""
    return re.sub(rb'="[^"]*"', b'=""', b"".join(re.findall(rb"<[^>]*>", with_sources(answer.content))))


def with_sources(content: bytes) -> bytes:
    """Scripts of ours keep their mark."""
    return re.sub(rb'<script src="/assets/[^"]*"( defer)?>', b"<script src=>", content)


def assert_safe(answer: httpx.Response, about: str) -> None:
    headers = answer.headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy, about
    assert "frame-ancestors 'none'" in policy or ("sandbox" in policy and "frame-ancestors 'self'" in policy), about
    assert "unsafe-eval" not in policy, about
    assert "allow-scripts" not in policy, about
    assert "allow-same-origin" not in policy, about
    assert headers["x-content-type-options"] == "nosniff", about
    assert headers["referrer-policy"] == "no-referrer", about
    assert headers["cache-control"] == "no-store", about
    assert headers["x-request-id"].startswith("req_"), about
    assert "strict-transport-security" not in headers, about


async def test_files_of_ours_may_be_kept_and_need_no_session(site: sites.Site, nobody: Browser) -> None:
    for route in application.routes(site):
        if is_page(route):
            continue
        answer = await nobody.client.get(route.path)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        kind = answer.headers["content-type"]
        assert re.fullmatch(r"(text/(css|javascript); charset=utf-8|font/woff2|image/svg\+xml)", kind)


async def test_no_name_in_a_path_is_more_than_not_found(
    routes: list[Route], browser: Browser, operator: Browser
) -> None:
    for route in routes:
        if kind_of(route) is None or route.permission is None:
            continue
        for name in ("%00", "em_%00", "%0a", "..%2f..%2fx", "%27%20OR%201%3D1", "%F0%9F%92%A9", "%ff", "x" * 2000):
            user = user_of(route, browser, operator)
            answer = await ask(user, route, dict.fromkeys(UNKNOWN, name), csrf_token=user.csrf_token, **JSON)
            assert answer.status_code == 404, describe(route, answer)


async def test_an_address_with_unknown_or_impossible_parameters_is_refused(
    routes: list[Route], switch: Switch, browser: Browser, operator: Browser
) -> None:
    switch.stopping = True
    for route in routes:
        if route.query is None or route.permission is None or routing.parameters(route.path):
            continue
        # Only operators may name an account.
        unknown = "stranger=x" if route.permission is callers.Permission.OPERATE else "account_id=x"
        for text in (unknown, "before=%00&before=%00", "%ff=1", "x=" + "y" * 5000):
            answer = await user_of(route, browser, operator).client.get(f"{route.path}?{text}")
            assert answer.status_code == 400, describe(route, answer)
        for field in msgspec.structs.fields(route.query):
            for value in ("%00", "%F0%9F%92%A9", "x" * 3000, "%27", "-1"):
                user = user_of(route, browser, operator)
                answer = await user.client.get(f"{route.path}?{field.encode_name}={value}")
                assert answer.status_code in (200, 303, 400, 404), describe(route, answer)
