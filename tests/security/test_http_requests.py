"""Security cases D: what a hostile client sends to the HTTP listener, on every route where it could be sent."""

import base64
import contextlib
import gzip
import itertools
import json
import re
from collections.abc import Sequence
from typing import Final, TypeVar

import pytest

from postroad import extensions
from postroad.api import extension_api
from postroad.api.operator import routes as operator_routes
from postroad.services.operations import operator_jobs, operator_state
from postroad.services.people import api_keys
from postroad.web import routing
from tests import raw_http
from tests.dashboard import sample_account
from tests.reliability import profile
from tests.security import all_routes, tenants
from tests.security.tenants import Tenant
from tests.security.whole_service import ADA, WholeService

T = TypeVar("T")

BOTH: Final = pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
# Larger bodies are tried where they are allowed, by the conformance tests.
TRIED_BYTES: Final = 4 * 1024 * 1024
PIECE: Final = 64 * 1024
CHUNK: Final = b"1\r\n \r\n"
LARGE_FORM: Final = "/profile/password"


def head(stop: all_routes.RouteCall, tenant: Tenant, *fields: str) -> bytes:
    """The head of a request whose body is of the type that the route takes."""
    mine = (f"Content-Type: {stop.route.body_type}", *stop.fields(tenant), *fields)
    return raw_http.get(stop.path, *mine, method=stop.route.method)


def refused(response: raw_http.Response) -> tuple[int, str]:
    reported = response.json()
    assert reported.keys() == {"error", "code", "request_id"}
    assert reported["request_id"] == response.headers["x-request-id"]
    return response.status, reported["code"]


def in_turn(values: Sequence[T], number: int) -> Sequence[T]:
    """All values in `make test-all`; otherwise two, and the next two for the next number."""
    return values if profile.IS_LONG else [values[(2 * number + each) % len(values)] for each in range(2)]


async def kept(service: WholeService) -> sample_account.Dump:
    """Everything that is in the store."""
    return await sample_account.dump(service.ctx.settings.database.url)


async def test_d2_a_body_that_says_it_is_too_large_is_refused_unread_on_every_route(service: WholeService) -> None:
    """D2: one octet over the limit is said, and none is sent: the refusal comes all the same."""
    async with tenants.settled(service, "north") as north:
        walked = all_routes.bodies(all_routes.route_calls(service, north))
        assert len(walked) > 40
        for stop in walked:
            said = f"Content-Length: {stop.route.body_limit + 1}"
            response = await raw_http.exchange(service.addresses["http"], head(stop, north, said))
            assert refused(response) == (413, "payload_too_large"), stop.path


async def test_d2_a_body_without_a_length_is_cut_at_the_limit_on_every_route(service: WholeService) -> None:
    """D2: chunks that go on one octet beyond the limit, and no end of them."""
    async with tenants.settled(service, "north") as north:
        before = await kept(service)
        for stop in all_routes.bodies(all_routes.route_calls(service, north)):
            limit = stop.route.body_limit
            if limit > TRIED_BYTES:
                continue
            async with raw_http.connect(service.addresses["http"]) as connection:
                await connection.send(head(stop, north, "Transfer-Encoding: chunked"))
                for size in (*[PIECE] * (limit // PIECE), limit % PIECE + 1):
                    await connection.send(b"%x\r\n%b\r\n" % (size, b" " * size))
                assert refused(await connection.response()) == (413, "payload_too_large"), stop.path
        assert await kept(service) == before


async def test_d2_no_route_unpacks_what_is_compressed(service: WholeService) -> None:
    """D2: a body of a few octets that says it is gzip."""
    async with tenants.settled(service, "north") as north:
        before, packed = await kept(service), gzip.compress(b" " * 1_000_000)
        for stop in all_routes.bodies(all_routes.route_calls(service, north)):
            said = {"Content-Type": stop.route.body_type, "Content-Encoding": "gzip", "Idempotency-Key": "packed"}
            answer = await stop.ask(north, content=packed, headers=said)
            assert all_routes.is_refusal(answer, 400), (stop.path, answer.text)
            assert "Content-Encoding" in answer.json()["error"]
        assert await kept(service) == before


NOT_TAKEN: Final = (
    b"[" * 100_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b"[]",
    b"NaN",
    b'{"id": NaN}',
    b'{"email": "\\ud800", "name": "\\ud800", "subject": "\\ud800"}',
    b'{"unheard_of": 1}',
    b'{"__proto__": {}, "constructor": {}}',
)


async def test_d3_no_route_that_takes_json_takes_this(service: WholeService) -> None:
    """D3: deep nesting, no numbers, half characters, other shapes, unknown and repeated members."""
    async with tenants.settled(service, "north") as north:
        before = await kept(service)
        walked = [stop for stop in all_routes.route_calls(service, north) if stop.takes_json]
        assert len(walked) > 12
        for number, stop in enumerate(walked):
            good = all_routes.BODIES[stop.route.method, stop.route.path]
            repeated = [f"{json.dumps(good)[:-1]}, {json.dumps(name)}: null}}".encode() for name in good]
            wrong = [json.dumps({**good, name: [[{}]]}).encode() for name in good]
            headers = {"Content-Type": "application/json", "Idempotency-Key": "strict"}
            for content in (*in_turn(NOT_TAKEN, number), *repeated, *wrong):
                answer = await stop.ask(north, content=content, headers=headers)
                status = 400 if len(content) <= stop.route.body_limit else 413
                assert all_routes.is_refusal(answer, status), (stop.path, content[:80], answer.text)
        assert await kept(service) == before


# The first is deeper than parsers of the standard library and others recurse; the second breaks every limit.
DEEP: Final = tuple(b'{"a": ' * levels + b"1" + b"}" * levels for levels in (2_000, 100_000))


async def test_d3_nesting_without_end_fails_on_no_route_of_other_apis(service: WholeService) -> None:
    """D3: those of operators, of other services, and for agents. A log line of an error fails the test."""
    scopes = frozenset({"*", "operator"})
    _, key = await api_keys.create(service.ctx, service.account.id, credential_id=None, name="all", scopes=scopes)
    state = operator_state.OperatorState(operator_jobs.Jobs(service.lines.logger()))
    offered = [*operator_routes.described(state)]
    offered += [route for api in extensions.parts("apis", extension_api.HttpApi) for route in api.prefixed]
    walked = {(one.method, re.sub(r"{\w+}", "x", one.path)) for one in offered if one.body is not None}
    assert len(walked) > 30
    headers = {"Authorization": f"Bearer {key}", "X-Postmark-Server-Token": key, "Idempotency-Key": "deep"}
    headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    async with tenants.client(service) as http:
        for method, path in sorted({*walked, ("POST", "/mcp")}):
            for content in DEEP:
                answer = await http.request(method, path, content=content, headers=headers)
                assert 400 <= answer.status_code < 500, (method, path, answer.text)
                assert answer.status_code != 401, path
    await state.close()


# Each with the number of octets, one in a chunk, that is more than it takes.
CHUNKS: Final = {"/emails": 65_536 + 1, "/v1/auth/login": 16 * 1024 + 1, "/login": 16 * 1024 + 1}


@pytest.mark.parametrize("path", CHUNKS)
async def test_d5_tiny_chunks_are_refused_when_there_are_too_many_of_them(service: WholeService, path: str) -> None:
    """D5: the refusal comes with the first chunk too many, though nothing follows it; a million end in nothing else."""
    pair = base64.b64encode(":".join(service.login).encode()).decode()
    kind = "application/x-www-form-urlencoded" if path == "/login" else "application/json"
    fields = ("Transfer-Encoding: chunked", f"Content-Type: {kind}", "Accept: */*", "Idempotency-Key: chunks")
    begin = raw_http.get(path, *fields, f"Authorization: Basic {pair}", method="POST")
    async with raw_http.connect(service.addresses["http"]) as connection:
        await connection.send(begin + CHUNK * CHUNKS[path])
        expected = (400, "invalid_request") if path == "/emails" else (413, "payload_too_large")
        assert refused(await connection.response()) == expected
    async with raw_http.connect(service.addresses["http"]) as connection:
        # Who goes on like this may be cut off before they have read why.
        with contextlib.suppress(ConnectionError):
            await connection.send(begin + CHUNK * 1_000_000)
        await connection.rest()
    assert (await service.http.get("/healthz")).status_code == 200
    assert await service.stored() == []


async def test_d5_a_form_of_a_hundred_thousand_fields_and_one_in_parts_are_refused(service: WholeService) -> None:
    """D5: as many fields as fit; and multipart, which no form of ours is."""
    async with tenants.settled(service, "north") as north:
        before = await kept(service)
        forms = [stop for stop in all_routes.bodies(all_routes.route_calls(service, north)) if stop.is_page]
        assert len(forms) > 20
        assert LARGE_FORM in {stop.route.path for stop in forms}
        for stop in forms:
            # All are read in one way: the largest number is tried where it is first possible.
            fields = 100_000 if stop.route.path == LARGE_FORM else 200
            many = f"csrf_token={north.csrf_token}&" + "a=1&" * fields
            in_parts = "--x\r\nContent-Disposition: form-data; name=csrf_token\r\n\r\n" * 100
            for kind, content in ((routing.FORM, many), ("multipart/form-data; boundary=x", in_parts)):
                answer = await stop.ask(north, content=content, headers={"Content-Type": kind})
                assert all_routes.is_refusal(answer, 400), (stop.path, answer.text)
        assert await kept(service) == before


HOSTILE: Final = (
    "' OR '1'='1",
    "'; DROP TABLE messages; --",
    "%",
    "\\",
    "a\0b",
    "south",
    "to:' OR 1=1 --",
    "account:x subject:%",
)
KEYS: Final = ("account_id", "1=1;--", "status[]", "from' OR '1'='1", "a.b", "__proto__", "", "%00")


@BOTH
async def test_d8_no_parameter_is_part_of_a_query(service: WholeService) -> None:
    """D8: characters of SQL in every parameter of every address, and names that no parameter has."""
    async with tenants.settled(service, "north") as north, tenants.settled(service, "south") as south:
        before = await kept(service)
        walked = [stop for stop in all_routes.route_calls(service, north) if stop.route.query is not None]
        assert len(walked) > 20
        numbers = itertools.count()
        for stop in walked:
            for name in stop.parameters:
                for value in HOSTILE if name == "search" else in_turn(HOSTILE, next(numbers)):
                    answer = await stop.ask(north, params={name: value})
                    # Of a provider that the account does not have, nothing is read.
                    expected = {404} if stop.path.startswith("/sso/") else {200, 303, 400}
                    if name == "list" and stop.path.startswith("/v1/suppressions/"):
                        expected = {400, 404}  # a list that nobody has left
                    assert answer.status_code in expected, (stop.path, name, value)
                    assert "Traceback" not in answer.text
                    tenants.assert_nothing_of(south, answer, asked=value)
            # One page is for one account of the login, and takes its id.
            for key in [one for one in in_turn(KEYS, next(numbers)) if one not in stop.parameters]:
                answer = await stop.ask(north, params={key: "south"})
                if not stop.route.ignores_bad_query:
                    assert all_routes.is_refusal(answer, 400), (stop.path, key, answer.text)
                tenants.assert_nothing_of(south, answer, asked="south")
        assert await kept(service) == before


async def test_d11_nobody_learns_of_a_blind_copy(service: WholeService) -> None:
    """D11: in no copy that arrives, in no event about another recipient; the sender alone sees whom they named."""
    hidden = ("eve@example.net", "mallory@example.net")
    async with tenants.settled(service, "north") as north:
        service.sink.transactions.clear()
        sent = await north.send(to=ADA, cc="bob@example.net", bcc=list(hidden))
        shown = await tenants.arrived(north, sent["id"])
        assert [one["email"] for one in shown["recipients"]] == [ADA, "bob@example.net", *hidden]
        reached = {one for copy in service.sink.transactions for one in copy.recipients}
        assert reached == {f"RCPT TO:<{one}>" for one in (ADA, "bob@example.net", *hidden)}
        for copy in service.sink.transactions:
            for word in ("eve@", "mallory@", "\r\nbcc:"):  # an id may contain "bcc" too
                assert word.encode() not in copy.content.lower()
        path = f"/v1/webhook/deliveries?message_id={sent['id']}"
        deliveries = (await north.do("GET", path))["deliveries"]
        reported = [(await north.do("GET", f"/v1/webhook/deliveries/{each['id']}"))["delivery"] for each in deliveries]
        assert len(reported) == 4
        for delivery in reported:
            (named,) = {one for one in (ADA, "bob@example.net", *hidden) if one in json.dumps(delivery)}
            assert named
