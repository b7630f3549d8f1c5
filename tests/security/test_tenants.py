"""Security cases J: two customers of one service, and strangers: neither ever sees anything of the other.

The walks of the API and of the dashboard ask each route for one thing of another account. Here both listeners are open
at once, everything of a customer carries their mark, and no answer to the other may hold it.
"""

import asyncio
import itertools
import time
from typing import Any, Final

import httpx
import pytest

from tests import raw_http
from tests.api.v1 import test_tenancy as api
from tests.dashboard import sample_account
from tests.dashboard import test_every_route as pages
from tests.reliability import profile
from tests.security import all_routes, tenants
from tests.security.tenants import Tenant
from tests.security.whole_service import WholeService

BOTH: Final = pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
UNKNOWN: Final = {**api.UNKNOWN, **pages.UNKNOWN}
PATH: Final = "path"
# Members of bodies, forms and addresses that are ids, and of what.
IDS: Final = {**pages.ALSO, "message": "message", "message_id": "message"}
ROUNDS: Final = profile.SCALE
# Rounds of each customer that are under way together; a run of minutes is to be long, not heavy.
AT_ONCE: Final = 3
PAUSE_SECONDS: Final = 0.5 if profile.MINUTES else 0.0


@BOTH
async def test_j1_no_id_of_another_customer_says_more_than_an_unknown_one(service: WholeService) -> None:
    """J1: every id of theirs in every path, parameter and body of API and dashboard; nothing changes."""
    async with tenants.settled(service, "north") as north, tenants.settled(service, "south") as south:
        before = await sample_account.dump(service.ctx.settings.database.url)
        asked = 0
        for stop in all_routes.route_calls(service, north):
            for place, foreign, unknown in named(stop, south):
                # One's own template is made where there is none.
                if (stop.route.method, stop.route.path) == ("PUT", "/v1/templates/{alias}"):
                    continue
                answers = [await send(stop, north, place, value) for value in (foreign, unknown)]
                reported = [(answer.status_code, words(answer, (foreign, unknown))) for answer in answers]
                # A list that is asked for what is not there is empty.
                assert reported[0][0] == (200 if place in stop.parameters else 404), (stop.route.path, reported)
                assert reported[0] == reported[1], (stop.route.method, stop.route.path, reported)
                tenants.assert_nothing_of(south, answers[0], asked=foreign)
                asked += 1
        assert asked > 40
        assert await sample_account.dump(service.ctx.settings.database.url) == before


def named(stop: all_routes.RouteCall, other: Tenant) -> list[tuple[str, str, str]]:
    """Where a route takes an id: the name of the place, the other customer's id for it, and one that nobody has."""
    kind = pages.kind_of(stop.route) if stop.is_page else all_routes.KINDS.get(stop.route.path)
    places = {name: IDS[name] for name in (*stop.parameters, *stop.members) if name in IDS}
    if kind in other.things:
        places[PATH] = kind
    return [(place, other.things[kind], UNKNOWN[kind]) for place, kind in places.items()]


async def send(stop: all_routes.RouteCall, tenant: Tenant, place: str, value: str) -> httpx.Response:
    """Ask a route with an id of this value at a place; all else is the customer's own."""
    more: dict[str, Any] = {}
    given = {place: value} if place in stop.members else {}
    if stop.takes_json:
        more["json"] = {**all_routes.BODIES[stop.route.method, stop.route.path], **given}
    elif stop.is_page and stop.route.method == "POST":
        more["data"] = {**stop.form(tenant), **given}
    if place in stop.parameters:
        more["params"] = {place: value}
    if stop.route.idempotent:
        more["headers"] = {"Idempotency-Key": "walked"}
    asked = all_routes.at(stop, value) if place == PATH else stop
    return await asked.ask(tenant, **more)


def words(answer: httpx.Response, values: tuple[str, ...]) -> str:
    """An answer without what differs from request to request, and without what was asked with."""
    text = tenants.CSRF_FIELD.sub("", answer.text.replace(answer.headers["x-request-id"], ""))
    for value in values:
        text = text.replace(value, "").replace(value.replace("@", "%40"), "")
    return text


STOLEN: Final = ("account_id", "is_admin", "id", "created_at")
# Whoever logs in or switches names one of their accounts; another one is refused with 403.
CHOSEN: Final = {
    ("/v1/auth/login", "account_id"),
    ("/login/second-factor", "account_id"),
    ("/login/second-factor/passkey", "account_id"),
    ("/switch", "account_id"),
}


async def test_j3_nobody_assigns_what_is_ours(service: WholeService) -> None:
    """J3: members and fields that are in no form, on every route of API and dashboard that changes something."""
    async with tenants.settled(service, "north") as north, tenants.settled(service, "south") as south:
        before = await sample_account.dump(service.ctx.settings.database.url)
        walked = [
            stop
            for stop in all_routes.bodies(all_routes.route_calls(service, north))
            if stop.takes_json or (stop.is_page and "csrf_token" in stop.members)
        ]
        assert len(walked) > 40
        for stop, name in itertools.product(walked, STOLEN):
            if (stop.path, name) in CHOSEN:
                continue
            if stop.takes_json:
                body = {**all_routes.BODIES[stop.route.method, stop.route.path], name: south.account_id}
                answer = await stop.ask(north, json=body, headers={"Idempotency-Key": "stolen"})
            else:
                answer = await stop.ask(north, data={**stop.form(north), name: south.account_id})
            assert all_routes.is_refusal(answer, 400), (stop.path, name, answer.text)
            assert name in answer.json()["error"], (stop.path, answer.text)
        assert await sample_account.dump(service.ctx.settings.database.url) == before


LIMITS: Final = ("-1", "0", "101", "9" * 30, "1e9", "NaN")


async def test_j4_no_place_in_a_list_leads_to_rows_of_another_customer(service: WholeService) -> None:
    """J4: their ids, cut and changed, as cursors of every list, in the API and the dashboard; and invalid limits."""
    async with tenants.settled(service, "north") as north, tenants.settled(service, "south") as south:
        ids = [south.things[kind] for kind in ("api_key", "credential", "domain", "message", "template")]
        places = [*ids, south.things["message"][:-1] + "f", south.things["suppression"].encode().hex(), "~", "0"]
        lists = [
            (stop, name)
            for stop in all_routes.route_calls(service, north)
            for name in stop.parameters
            if name in {"cursor", "before", "after", "limit"}
        ]
        assert len({stop.path for stop, _ in lists}) > 12
        for stop, name in lists:
            for value in LIMITS if name == "limit" else places:
                answer = await stop.ask(north, params={name: value})
                assert answer.status_code == 400 or (name != "limit" and answer.status_code == 200), (stop.path, value)
                tenants.assert_nothing_of(south, answer, asked=value)


async def live(tenant: Tenant, other: Tenant, number: int) -> None:
    """A round of a customer's day; no answer holds anything of the other, and every answer is the customer's own."""
    sent = await tenant.send(text=f"{tenant.mark} {number}", tags=[tenant.mark])
    paths = (f"/emails/{sent['id']}", f"/v1/messages/{sent['id']}", "/v1/messages", "/v1/templates", "/v1/webhook")
    asked = [tenant.ask("GET", path) for path in (*paths, "/v1/suppressions", "/v1/audit-log", "/v1/auth/me")]
    filled = {"variables": {"name": f"{tenant.mark} {number}"}}
    asked.append(tenant.ask("POST", f"/v1/templates/{tenant.mark}/preview", json=filled))
    asked.append(tenant.ask("GET", f"/emails/{other.things['message']}"))
    asked += [tenant.browser.get(path) for path in ("/messages", f"/messages/{sent['id']}", "/profile", "/team")]
    for answer in await asyncio.gather(*asked):
        is_foreign = str(answer.url).endswith(other.things["message"])
        assert answer.status_code == (404 if is_foreign else 200), (answer.url, answer.text)
        assert is_foreign or tenant.mark in answer.text
        tenants.assert_nothing_of(other, answer)


@BOTH
async def test_j6_two_customers_at_once_see_nothing_of_each_other(service: WholeService) -> None:
    """J6: both listeners and the delivery engine, in one process; `TEST_MINUTES` makes it longer."""
    until = time.monotonic() + profile.MINUTES * 60
    async with tenants.settled(service, "north") as north, tenants.settled(service, "south") as south:

        async def days(tenant: Tenant, other: Tenant) -> None:
            for number in itertools.count():
                await live(tenant, other, number)
                # So that no rate is exceeded in a long run, and no token ends.
                service.clock.pass_seconds(0.1)
                if number + 1 >= ROUNDS and time.monotonic() >= until:
                    return
                await asyncio.sleep(PAUSE_SECONDS)

        pairs = [(north, south), (south, north)] * AT_ONCE
        async with asyncio.TaskGroup() as group:
            for tenant, other in pairs:
                group.create_task(days(tenant, other))
        for tenant in (north, south):
            for row in (await tenant.do("GET", "/v1/messages?limit=100"))["messages"]:
                await tenants.arrived(tenant, row["id"])
    # The copies that went out: each is of one of them, from the envelope to the last line.
    for copy in service.sink.transactions:
        whole = b" ".join([copy.mail.encode(), *(one.encode() for one in copy.recipients), copy.content])
        assert (b"north" in whole) != (b"south" in whole)


# What other products have let strangers read.
CLOSED: Final = (
    *("/debug", "/debug/vars", "/debug/pprof/", "/_debug", "/server-status", "/status", "/info", "/env", "/.env"),
    *("/actuator", "/actuator/env", "/admin", "/console", "/config", "/.git/config", "/backup.sql", "/postroad.db"),
    *("/graphql", "/api", "/swagger.json", "/v1", "/v1/", "/v1/users", "/v1/inbox", "/inbox", "/assets/", "/assets/.."),
    *(
        "/assets/../site.py",
        "/assets/%2e%2e/site.py",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/metrics/",
        "/healthz/x",
    ),
)
OPEN: Final = ("/healthz", "/readyz", "/docs", "/openapi.json", "/login")
FORWARDED: Final = ("X-Forwarded-For", "X-Real-IP", "Forwarded", "Via", "X-Forwarded-Host", "X-Forwarded-Proto")


async def test_j9_what_needs_no_credential_reveals_nothing(service: WholeService) -> None:
    """J9: places where others keep what is for their makers are not there; what is open says nothing of anybody."""
    async with tenants.settled(service, "north") as north, tenants.client(service) as http:
        north.secrets.append(service.ctx.settings.database.url)
        for path in CLOSED:
            answer = await raw_http.exchange(service.addresses["http"], raw_http.get(path))
            assert answer.status in {303, 401, 404}, (path, answer.status, answer.body[:200])
            assert b"north" not in answer.body
        for path in OPEN:
            shown = await http.get(path)
            assert shown.status_code == 200
            tenants.assert_nothing_of(north, shown)
            assert not [secret for secret in north.secrets if secret in shown.text], path
        for name in FORWARDED:
            assert (await http.get("/metrics", headers={name: "127.0.0.1"})).status_code == 404
        # Who watches from this host reads numbers, and no names of anybody.
        watched = await http.get("/metrics")
        assert watched.status_code == 200
        tenants.assert_nothing_of(north, watched)
        assert "example.net" not in watched.text
        for method in ("TRACE", "OPTIONS", "CONNECT", "PROPFIND", "DEBUG"):
            request = raw_http.get("/v1/account", "X-Secret: reflected", method=method)
            answer = await raw_http.exchange(service.addresses["http"], request)
            assert answer.status in {400, 405}, method
            assert b"reflected" not in answer.body
