"""Every compatible API has its own errors and its own header field for the key; without a key, no route works."""

from pathlib import Path
from typing import Final

import httpx
import pytest

from postroad import context, errors, extensions
from postroad.api import extension_api
from postroad.model.people import callers
from postroad.services.people import logins, users
from postroad.storage.people import accounts
from postroad.web import routing
from postroad_resend import api as resend
from postroad_resend import error_shape
from tests.compat import compat_client
from tests.contexts import PASSWORD, Clock
from tests.roles import test_metrics

KEYS: Final = {"Resend": "Authorization", "Postmark": "X-Postmark-Server-Token"}


async def echo(ctx: context.Context, request: routing.Request) -> routing.Response:
    return extension_api.respond({"key": extension_api.idempotency_key(request), "body": request.body})


def echoing(api: extension_api.HttpApi) -> extension_api.HttpApi:
    """The compatible API with a single route, which takes an array."""
    route = extension_api.route(
        "POST /echo",
        echo,
        permission=callers.Permission.SEND,
        scope=callers.Scope.SEND,
        body=list,
        idempotent=True,
        key_required=False,
    )
    return extension_api.HttpApi(
        service=api.service,
        prefix=api.prefix,
        routes=(route,),
        credential=api.credential,
        error_body=api.error_body,
    )


def presented(api: extension_api.HttpApi, key: str) -> dict[str, str]:
    return {KEYS[api.service]: f"Bearer {key}" if api.service == "Resend" else key}


def told(response: httpx.Response) -> str:
    """The message of an error in any shape."""
    body = response.json()
    return str(body.get("message") or body["Message"])


@pytest.mark.parametrize("api", extensions.parts("apis", extension_api.HttpApi), ids=lambda api: api.service)
class TestEveryApi:
    async def test_an_unknown_path_is_named(self, ctx: context.Context, api: extension_api.HttpApi) -> None:
        async with compat_client.opened(ctx, api) as client:
            response = await client.post("/broadcasts/7/send")
        assert response.status_code == 404
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-request-id"].startswith("req_")
        expected = f"POST /broadcasts/7/send: Postroad does not support this part of the {api.service} API"
        assert told(response) == f"{expected}; see docs/compatibility.md"

    async def test_an_unknown_method_is_named(self, ctx: context.Context, api: extension_api.HttpApi) -> None:
        async with compat_client.opened(ctx, echoing(api)) as client:
            response = await client.delete("/echo")
        assert response.status_code == 405
        assert response.headers["allow"] == "POST"
        assert told(response).startswith("DELETE /echo: Postroad does not support this part of the")

    async def test_the_key_is_presented_in_the_rooms_own_way(
        self, ctx: context.Context, api: extension_api.HttpApi, account: accounts.Account
    ) -> None:
        key = await compat_client.new_key(ctx, account.id)
        async with compat_client.opened(ctx, echoing(api)) as client:
            accepted = await client.post("/echo", json=[1, "two"], headers=presented(api, key))
            missing = await client.post("/echo", json=[])
            wrong = await client.post("/echo", json=[], headers=presented(api, "pr_live_wrong"))
        assert (accepted.status_code, accepted.json()["body"]) == (200, [1, "two"])
        assert missing.status_code == 401
        assert missing.headers["www-authenticate"] == 'Bearer realm="postroad"'
        assert told(missing).startswith(f"{KEYS[api.service]}: missing")
        assert wrong.status_code in (401, 403)

    async def test_a_key_without_the_scope_is_refused(
        self, ctx: context.Context, api: extension_api.HttpApi, account: accounts.Account
    ) -> None:
        key = await compat_client.new_key(ctx, account.id, frozenset({callers.Scope.READ}))
        async with compat_client.opened(ctx, echoing(api), presented(api, key)) as client:
            response = await client.post("/echo", json=[])
        assert response.status_code == 401
        assert "does not have the scope 'send'" in told(response)

    async def test_an_idempotency_key_is_optional(
        self, ctx: context.Context, api: extension_api.HttpApi, account: accounts.Account
    ) -> None:
        key = await compat_client.new_key(ctx, account.id)
        async with compat_client.opened(ctx, echoing(api), presented(api, key)) as client:
            made = await client.post("/echo", json=[])
            given = await client.post("/echo", json=[], headers={"Idempotency-Key": "order-7"})
            long = await client.post("/echo", json=[], headers={"Idempotency-Key": "x" * 256})
            wrong = await client.post("/echo", json={"no": "array"})
        assert made.json()["key"] == made.headers["x-request-id"]
        assert given.json()["key"] == "order-7"
        assert told(long) == "Idempotency-Key: at most 255 characters"
        assert told(wrong) == "body: expected an array, got a JSON object"

    async def test_without_a_key_nothing_but_unknown_paths_is_told(
        self, ctx: context.Context, api: extension_api.HttpApi
    ) -> None:
        async with compat_client.opened(ctx, api) as client:
            for route in api.routes:
                response = await client.request(route.method, route.path.replace("{", "").replace("}", ""))
                assert (route.path, response.status_code) == (route.path, 401)


async def test_resend_knows_the_names_of_errors(ctx: context.Context, account: accounts.Account) -> None:
    key = await compat_client.new_key(ctx, account.id, frozenset({callers.Scope.READ}))
    api = echoing(resend.API)
    async with compat_client.opened(ctx, api) as client:
        missing = await client.post("/echo", json=[])
        wrong = await client.post("/echo", json=[], headers=presented(api, "pr_live_wrong"))
        restricted = await client.post("/echo", json=[], headers=presented(api, key))
        unknown = await client.post("/audiences", json={})
    for response, status, name in [
        (missing, 401, "missing_api_key"),
        (wrong, 403, "invalid_api_key"),
        (restricted, 401, "restricted_api_key"),
        (unknown, 404, "not_found"),
    ]:
        assert list(response.json()) == ["name", "message", "statusCode"]
        assert (response.status_code, response.json()["statusCode"], response.json()["name"]) == (status, status, name)


@pytest.mark.parametrize("api", extensions.parts("apis", extension_api.HttpApi), ids=lambda api: api.service)
def test_every_error_has_a_shape(api: extension_api.HttpApi) -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and "code" in dir(kind)]
    assert len(kinds) > 15
    for kind in kinds:
        error = kind("x", allowed=()) if kind is errors.MethodNotAllowed else kind("x")
        status, body = api.error_body(error, "what to do")
        assert 400 <= status < 600
        assert b"what to do" in routing.refusal(error, request_id="req_1", shape=(status, body))[2]


def test_an_error_keeps_its_retry_after() -> None:
    error = errors.RateLimited("slow down", retry_after=3)
    status, fields, content = routing.refusal(error, request_id="req_1", shape=error_shape.shape(error, "slow down"))
    assert status == 429
    assert (b"retry-after", b"3") in fields
    assert content == b'{"name":"rate_limit_exceeded","message":"slow down","statusCode":429}'


async def test_the_rooms_are_served_beside_the_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = test_metrics.settings(tmp_path, listen="")
    _, answer = await test_metrics.asked(["api"], chosen, monkeypatch, where="http", path="/compat/postmark/nothing")
    assert answer.status_code == 404
    assert answer.json()["Message"].startswith("GET /nothing: Postroad does not support this part of the Postmark API")


@pytest.mark.parametrize("api", extensions.parts("apis", extension_api.HttpApi), ids=lambda api: api.service)
async def test_an_old_token_of_a_person_opens_nothing_until_it_is_confirmed(
    ctx: context.Context, account: accounts.Account, clock: Clock, api: extension_api.HttpApi
) -> None:
    """Keys, secrets and exports are here, too."""
    email, role = "owner@example.com", callers.Role.OWNER
    await users.create(ctx, account.id, email=email, password=PASSWORD, role=role)
    token = (await logins.log_in(ctx, email, PASSWORD, client_address="192.0.2.1")).token
    async with compat_client.opened(ctx, api, presented(api, token)) as client:
        assert (await client.get("/domains")).status_code == 200
        clock.pass_seconds(15 * 60)
        for route in api.routes:
            answer = await client.request(route.method, route.path.replace("{", "").replace("}", ""))
            assert (answer.is_client_error, answer.headers.get("confirmation")) == (True, "required"), route.path
