"""`/v1/auth` over HTTP: sessions open, close and change their password, and failures are slowed."""

from collections.abc import AsyncIterator
from datetime import datetime

import httpx
import pytest
import pytest_asyncio

from postroad import context
from postroad.api import authentication
from postroad.api.v1 import auth
from postroad.services.accounts import account_registry
from postroad.services.people import authentication as caller_authentication
from postroad.storage.people import accounts, users
from postroad.web import application
from tests import asgi
from tests.api import app_server
from tests.contexts import PASSWORD, SECOND, Clock
from tests.services.people import authenticator

NEW_PASSWORD = "an even better horse"
LOG_IN = {"email": "owner@example.com", "password": PASSWORD}


@pytest.fixture
def lines() -> app_server.CapturedLog:
    return app_server.CapturedLog()


@pytest_asyncio.fixture
async def client(
    ctx: context.Context, owner: users.User, lines: app_server.CapturedLog
) -> AsyncIterator[httpx.AsyncClient]:
    served = application.Application(
        ctx,
        auth.ROUTES,
        authenticate=authentication.authenticate,
        require=caller_authentication.require,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=lines.logger(),
    )
    transport = httpx.ASGITransport(asgi.of(served), client=("192.0.2.1", 50_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://postroad.test") as made:
        yield made


def bearer(answer: httpx.Response) -> dict[str, str]:
    return {"Authorization": f"Bearer {answer.json()['token']}"}


async def log_in(client: httpx.AsyncClient, **changes: object) -> httpx.Response:
    return await client.post("/v1/auth/login", json=LOG_IN | changes)


async def me(client: httpx.AsyncClient, headers: dict[str, str]) -> int:
    return (await client.get("/v1/auth/me", headers=headers)).status_code


def is_refusal(answer: httpx.Response, status: int, code: str) -> bool:
    body = answer.json()
    return (
        answer.status_code == status
        and body.keys() == {"error", "code", "request_id"}
        and body["code"] == code
        and body["request_id"] == answer.headers["X-Request-ID"]
    )


async def test_a_log_in_answers_with_a_token_its_end_and_whose_it_is(
    client: httpx.AsyncClient, account: accounts.Account, owner: users.User, clock: Clock
) -> None:
    answer = await log_in(client)
    body = answer.json()
    assert answer.status_code == 200
    assert body.keys() == {"token", "expires_at", "user", "account", "request_id"}
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert datetime.fromisoformat(body["expires_at"]).timestamp() == clock.now // SECOND + 3600
    assert body["account"]["id"] == account.id
    assert body["account"]["credits"] == {"available": 0, "reserved": 0}
    assert body["user"].keys() == {"id", "email", "role", "created_at"}
    assert (body["user"]["id"], body["user"]["role"]) == (owner.id, "owner")
    assert answer.headers["Cache-Control"] == "no-store"


async def test_an_unknown_email_and_a_wrong_password_get_the_same_401(client: httpx.AsyncClient) -> None:
    wrong = await log_in(client, password="wrong password")
    unknown = await log_in(client, email="nobody@example.com")
    assert is_refusal(wrong, 401, "unauthorized")
    assert is_refusal(unknown, 401, "unauthorized")
    assert wrong.json()["error"] == unknown.json()["error"]
    assert wrong.headers.get_list("WWW-Authenticate") == unknown.headers.get_list("WWW-Authenticate")


async def test_repeated_failures_are_answered_429_with_retry_after(client: httpx.AsyncClient, clock: Clock) -> None:
    for _ in range(5):
        assert (await log_in(client, password="wrong password")).status_code == 401
    slowed = await log_in(client)
    assert is_refusal(slowed, 429, "rate_limited")
    clock.pass_seconds(int(slowed.headers["Retry-After"]))
    assert (await log_in(client)).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"email": "owner@example.com"},
        LOG_IN | {"email": None},
        LOG_IN | {"password": "x" * 257},
        LOG_IN | {"password": "nul \0 nul"},
        LOG_IN | {"email": "x" * 1001},
        LOG_IN | {"account_id": "acc_1"},
    ],
)
async def test_a_malformed_log_in_is_an_invalid_request(client: httpx.AsyncClient, body: object) -> None:
    answer = await client.post("/v1/auth/login", json=body)
    assert is_refusal(answer, 400, "invalid_request")
    assert PASSWORD not in answer.text


async def test_me_says_who_the_token_belongs_to(
    client: httpx.AsyncClient, account: accounts.Account, owner: users.User
) -> None:
    session = await log_in(client)
    answer = await client.get("/v1/auth/me", headers=bearer(session))
    assert answer.status_code == 200
    assert answer.json() == {
        "user": session.json()["user"],
        "account": session.json()["account"],
        "request_id": answer.headers["X-Request-ID"],
    }


async def test_a_log_out_is_204_and_ends_the_session(client: httpx.AsyncClient) -> None:
    first, second = await log_in(client), await log_in(client)
    answer = await client.post("/v1/auth/logout", headers=bearer(first))
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["X-Request-ID"]
    assert await me(client, bearer(first)) == 401
    assert await me(client, bearer(second)) == 200
    assert (await client.post("/v1/auth/logout", headers=bearer(first))).status_code == 401


async def test_a_new_password_ends_all_sessions_but_the_one_in_the_answer(client: httpx.AsyncClient) -> None:
    older = [await log_in(client), await log_in(client)]
    answer = await client.post(
        "/v1/auth/password",
        json={"current_password": PASSWORD, "new_password": NEW_PASSWORD},
        headers=bearer(older[0]),
    )
    assert answer.status_code == 200
    assert answer.json().keys() == older[0].json().keys()
    assert [await me(client, bearer(session)) for session in older] == [401, 401]
    assert await me(client, bearer(answer)) == 200
    assert (await log_in(client)).status_code == 401
    assert (await log_in(client, password=NEW_PASSWORD)).status_code == 200


async def test_a_wrong_current_password_changes_nothing(client: httpx.AsyncClient) -> None:
    session = await log_in(client)
    answer = await client.post(
        "/v1/auth/password",
        json={"current_password": "wrong password", "new_password": NEW_PASSWORD},
        headers=bearer(session),
    )
    assert is_refusal(answer, 401, "unauthorized")
    assert await me(client, bearer(session)) == 200
    assert (await log_in(client)).status_code == 200


@pytest.mark.parametrize("new", ["short", "x" * 257, None])
async def test_a_bad_new_password_is_an_invalid_request(client: httpx.AsyncClient, new: object) -> None:
    session = await log_in(client)
    answer = await client.post(
        "/v1/auth/password", json={"current_password": PASSWORD, "new_password": new}, headers=bearer(session)
    )
    assert is_refusal(answer, 400, "invalid_request")
    assert "new_password" in answer.json()["error"]


async def test_every_login_is_logged_with_its_address_and_without_its_words(
    client: httpx.AsyncClient, lines: app_server.CapturedLog
) -> None:
    await client.post("/v1/auth/login", json=LOG_IN | {"password": "wrong horse"})
    session = await client.post("/v1/auth/login", json=LOG_IN)
    await client.get("/v1/auth/me", headers=bearer(session))
    assert [(line["route"], line["status"], line.get("client_address")) for line in lines.kept] == [
        ("/v1/auth/login", 401, "192.0.2.1"),
        ("/v1/auth/login", 200, "192.0.2.1"),
        ("/v1/auth/me", 200, "192.0.2.1"),
    ]
    assert "horse" not in repr(lines.kept)


async def test_a_login_with_a_second_factor_needs_its_code(
    ctx: context.Context, client: httpx.AsyncClient, owner: users.User, clock: Clock
) -> None:
    secret, codes = await authenticator.set_up(ctx, owner, clock)
    clock.pass_seconds(60)
    for body in (LOG_IN, LOG_IN | {"code": None}, LOG_IN | {"code": authenticator.wrong(secret, clock)}):
        refused = await client.post("/v1/auth/login", json=body)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
        assert refused.headers["second-factor"] == "required"
    wrong = await client.post("/v1/auth/login", json=LOG_IN | {"password": "wrong", "code": codes[0]})
    assert wrong.status_code == 401
    assert "second-factor" not in wrong.headers
    for code in (authenticator.code(secret, clock), codes[0]):
        answer = await client.post("/v1/auth/login", json=LOG_IN | {"code": code})
        assert answer.status_code == 200
        assert answer.json().keys() == {"token", "expires_at", "user", "account", "request_id"}
        assert (await client.get("/v1/auth/me", headers=bearer(answer))).status_code == 200


async def test_a_code_that_nobody_needs_is_ignored(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/auth/login", json=LOG_IN | {"code": "123456"})).status_code == 200
    too_long = await client.post("/v1/auth/login", json=LOG_IN | {"code": "1" * 41})
    assert too_long.status_code == 400


async def test_a_token_is_refused_until_a_required_second_factor_is_set_up(
    ctx: context.Context, client: httpx.AsyncClient, owner: users.User
) -> None:
    answer = await client.post("/v1/auth/login", json=LOG_IN)
    await account_registry.require_second_factor(ctx, owner.account_id, required=True)
    refused = await client.get("/v1/auth/me", headers=bearer(answer))
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert refused.headers["second-factor"] == "missing"


async def test_sessions_are_listed_and_ended_one_by_one(client: httpx.AsyncClient, owner: users.User) -> None:
    first = await log_in(client)
    second = await client.post("/v1/auth/login", json=LOG_IN, headers={"User-Agent": "curl/8.5.0"})
    mine = {"Authorization": f"Bearer {first.json()['token']}"}
    listed = (await client.get("/v1/auth/sessions", headers=mine)).json()["sessions"]
    assert [(one["kind"], one["current"]) for one in listed if one["current"]] == [("token", True)]
    (other,) = [one for one in listed if not one["current"]]
    assert (other["device"], other["methods"], other["account_id"]) == ("curl/8.5.0", ["password"], owner.account_id)
    assert (await client.delete(f"/v1/auth/sessions/{other['id']}", headers=mine)).status_code == 204
    theirs = {"Authorization": f"Bearer {second.json()['token']}"}
    assert is_refusal(await client.get("/v1/auth/me", headers=theirs), 401, "unauthorized")
    assert is_refusal(await client.delete(f"/v1/auth/sessions/{other['id']}", headers=mine), 404, "not_found")
    assert (await client.get("/v1/auth/me", headers=mine)).status_code == 200


async def test_a_token_is_for_the_account_that_is_named(client: httpx.AsyncClient, owner: users.User) -> None:
    answer = await log_in(client, account_id=owner.account_id)
    assert answer.json()["account"]["id"] == owner.account_id
    assert is_refusal(await log_in(client, account_id="acc_" + "0" * 28), 403, "forbidden")
    # Whoever does not know the password learns nothing about accounts.
    wrong = await log_in(client, account_id="acc_" + "0" * 28, password="wrong password")
    assert is_refusal(wrong, 401, "unauthorized")
