"""Security cases E: who gets in, at the API and at the dashboard: tokens of the API, and sessions of browsers.

Tokens are forged with the keys of the installation itself. So each is refused for what the case says of it, and for
nothing else: the same token without the fault is taken.
"""

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from postroad.dashboard.framework import cookies
from postroad.keys import installation_keys
from postroad.model.people import callers
from postroad.services.people import passwords, users
from tests import contexts
from tests.delivery import parts
from tests.security import tenants
from tests.security.tenants import PASSWORD, Tenant
from tests.security.whole_service import ADA, BEGIN, MESSAGE, SENDER, WholeService, hand_over, plain
from tests.submission import submission_server

BOTH: Final = pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
KEYS: Final = installation_keys.Keys.derive(contexts.SECRET_KEY.encode())
NEW: Final = "another long sentence"
# At once, as many as the case says.
LOG_INS: Final = 50
HOST_FIELDS: Final = ("Host", "X-Forwarded-Host", "X-Host", "X-Forwarded-Server", "X-Original-Host", "X-Forwarded-For")
Forge = Callable[[dict[str, Any], bytes], str]


def claims_of(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


def written(header: Mapping[str, Any], claims: Mapping[str, Any], key: bytes) -> str:
    """A token by hand, signed with HS256 whatever its header says."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    signed = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(b".".join(parts), key)
    return b".".join([*parts, base64.urlsafe_b64encode(signed).rstrip(b"=")]).decode()


def signed(claims: dict[str, Any], key: bytes, **header: Any) -> str:
    return written({"alg": "HS256", "typ": "JWT", **header}, claims, key)


async def let_in(tenant: Tenant, service: WholeService, *, token: str, session: str) -> tuple[bool, bool]:
    """Whether each accepts: the API the token, the dashboard the session."""
    async with tenants.client(service) as http:
        reported = await http.get("/v1/account", headers={"Authorization": f"Bearer {token}"})
        browser = {"Accept": "text/html", "Cookie": f"{cookies.SESSION}={session}"}
        shown = await http.get("/profile", headers=browser)
    assert reported.status_code in {200, 401}, reported.text
    assert shown.status_code in {200, 303}, shown.text
    if reported.status_code == 401:
        assert reported.json()["code"] == "unauthorized"
        tenants.assert_nothing_of(tenant, reported)
    if shown.status_code == 303:
        assert shown.headers["location"].startswith("/login")
    return reported.status_code == 200, shown.status_code == 200


async def assert_refused(service: WholeService, forgeries: Mapping[str, Forge]) -> None:
    """Each of these is refused by both."""
    async with tenants.settled(service, "north") as north:
        token, session = claims_of(north.token), claims_of(north.browser.cookies[cookies.SESSION])
        good = await let_in(
            north, service, token=signed(token, KEYS.token), session=signed(session, KEYS.session, kid="any")
        )
        assert good == (True, True)
        for case, forge in forgeries.items():
            forged = forge(token, KEYS.token), forge(session, KEYS.session)
            opened = await let_in(north, service, token=forged[0], session=forged[1])
            assert opened == (False, False), case


def unsigned(algorithm: str) -> Forge:
    return lambda claims, key: written({"alg": algorithm, "typ": "JWT"}, claims, key).rpartition(".")[0] + "."


def called(algorithm: str) -> Forge:
    return lambda claims, key: written({"alg": algorithm, "typ": "JWT"}, claims, key)


def really(algorithm: str, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> Forge:
    return lambda claims, _: jwt.encode(claims, key, algorithm=algorithm)


def headed(header: Mapping[str, Any], *, key: bytes | None = None) -> Forge:
    """With more in the header, and signed with another key if there is one."""
    return lambda claims, ours: signed(claims, ours if key is None else key, **header)


def claiming(more: Mapping[str, Any], *, but: str = "") -> Forge:
    """With other claims, and without one of them."""
    return lambda claims, key: signed({name: each for name, each in {**claims, **more}.items() if name != but}, key)


async def test_e1_a_token_without_a_signature_opens_nothing(service: WholeService) -> None:
    """E1: every way to write `none`, with and without a signature, and HS256 with an empty one."""
    names = ("none", "None", "NONE", "nOnE", "", "HS256")
    forgeries = {name: unsigned(name) for name in names}
    forgeries |= {f"{name}, signed": called(name) for name in names if name != "HS256"}
    await assert_refused(service, forgeries)


async def test_e2_no_other_algorithm_opens_anything(service: WholeService) -> None:
    """E2: keys of ours are secret, so there is no public one to sign with; no kind that would have one is taken."""
    private: dict[str, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey] = {
        "RS256": rsa.generate_private_key(65537, 2048),
        "ES256": ec.generate_private_key(ec.SECP256R1()),
    }
    forgeries = {name: really(name, key) for name, key in private.items()}
    forgeries["HS384"] = lambda claims, key: jwt.encode(claims, key + bytes(16), algorithm="HS384")
    forgeries["HS512"] = lambda claims, key: jwt.encode(claims, key + bytes(32), algorithm="HS512")
    forgeries |= {f"{name} in name": called(name) for name in ("RS256", "HS512", "hs256")}
    await assert_refused(service, forgeries)


async def test_e3_what_a_header_says_of_keys_is_neither_used_nor_fetched(service: WholeService) -> None:
    """E3: a key, or where one is, in the header of a token that is signed with it; nobody is asked for it."""
    visited: list[object] = []

    async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visited.append(writer)
        writer.close()

    own = bytes(range(32))
    octets = base64.urlsafe_b64encode(own).rstrip(b"=").decode()
    server = await asyncio.start_server(note, "127.0.0.1", 0)
    async with server:
        place = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys.json"
        headers: list[dict[str, Any]] = [
            {"jku": place},
            {"x5u": place},
            {"jwk": {"kty": "oct", "k": octets}},
            {"kid": "../../../../dev/null"},
            {"kid": "' UNION SELECT 'x' --"},
            {"kid": place},
            {"x5c": [octets]},
        ]
        forgeries = {f"{header} {key!r}": headed(header, key=key) for header in headers for key in (own, b"")}
        await assert_refused(service, forgeries)
    assert visited == []


async def test_e4_a_critical_extension_opens_nothing(service: WholeService) -> None:
    """E4: what must be understood and is not; known names, no names and other shapes alike."""
    crit: list[Any] = [["x"], ["exp"], ["b64"], [], "x", None, {"x": 1}]
    forgeries = {str(value): headed({"crit": value, "x": 1, "b64": True}) for value in crit}
    await assert_refused(service, forgeries)


async def test_e5_a_token_is_valid_for_its_own_purpose_only(service: WholeService) -> None:
    """E5: tokens for other audiences, tokens of the other listener, and tokens in place of keys and passwords."""
    foreign: list[dict[str, Any]] = [
        {"iss": "post"},
        {"iss": "postroad"},
        {"iss": ["postroad"]},
        {"aud": "x"},
        {"aud": []},
        {"aud": None},
    ]
    forgeries = {str(more): claiming(more) for more in foreign}
    await assert_refused(service, forgeries)
    async with tenants.settled(service, "east") as east:
        session = east.browser.cookies[cookies.SESSION]
        assert await let_in(east, service, token=session, session=east.token) == (False, False)
        async with tenants.client(service) as http:
            for user, secret in ((east.email, PASSWORD), (east.email, east.token), ("token", session)):
                assert (await http.get("/v1/account", auth=(user, secret))).status_code == 401
            answer = await http.get(f"/v1/account?access_token={east.token}&token={east.token}")
            assert answer.status_code == 401
            # A session that is no cookie, and a cookie at the API.
            answer = await http.get("/v1/account", headers={"Cookie": f"{cookies.SESSION}={session}"})
            assert answer.status_code == 401


async def test_e6_a_token_outside_its_time_opens_nothing(service: WholeService) -> None:
    """E6: expired, not yet good, without an end, or with times of another type."""
    now = service.clock() // contexts.SECOND
    odd: dict[str, list[Any]] = {
        "exp": [now, now - 1, 0, -1, str(now + 60), now + 60.5, 10**18, 1e18, 2**63, None, True],
        "nbf": [now + 3600, str(now), 10**18, []],
        "iat": [now + 3600, str(now), None],
        "epoch": [None, "0"],
    }
    forgeries = {f"{name} {value!r}": claiming({name: value}) for name, values in odd.items() for value in values}
    forgeries |= {f"no {name}": claiming({}, but=name) for name in ("exp", "iat", "epoch", "jti", "sub", "acc")}
    await assert_refused(service, forgeries)


async def by_operator(service: WholeService, tenant: Tenant, *, is_locked_out: bool) -> None:
    """The operator makes a link for a new password, which is used; or disables the user."""
    owner = await users.by_email(service.ctx, tenant.email)
    assert owner is not None
    if is_locked_out:
        await users.disable(service.ctx, owner.account_id, owner.id)
        return
    made = await users.create_password_link(service.ctx, owner.account_id, owner.id)
    async with tenants.client(service) as http:
        assert (await http.post(f"/password/{made.token}", data={"password": NEW})).status_code == 303


@pytest.mark.parametrize("way", ["by the API", "by the dashboard", "by a link", "locked out"])
async def test_e8_whatever_takes_a_password_away_ends_both_kinds_of_sessions(service: WholeService, way: str) -> None:
    """E8: the tokens of the API and the sessions of browsers that were there before are dead, at once."""
    async with tenants.settled(service, "north") as north:
        before = {"token": north.token, "session": north.browser.cookies[cookies.SESSION]}
        assert await let_in(north, service, **before) == (True, True)
        if way == "by the API":
            change = {"current_password": PASSWORD, "new_password": NEW}
            await north.do("POST", "/v1/auth/password", json=change)
        elif way == "by the dashboard":
            form = {"csrf_token": north.csrf_token, "current_password": PASSWORD, "new_password": NEW}
            assert (await north.browser.post("/profile/password", data=form)).status_code == 303
        else:
            await by_operator(service, north, is_locked_out=way == "locked out")
        assert await let_in(north, service, **before) == (False, False)
        assert (await tenants.log_in(service, north.email)).status_code == 401
        assert (await tenants.log_in(service, north.email, NEW)).status_code == (401 if way == "locked out" else 200)


@BOTH
async def test_e9_a_link_for_a_password_works_once_though_ten_use_it_at_once(service: WholeService) -> None:
    """E9: one of ten gets in, and theirs is the password; a second use and an old link are like an unknown one."""
    async with tenants.settled(service, "north") as north, tenants.client(service) as http:
        body = {"email": "kim@north.example", "role": "developer"}
        path = httpx.URL((await north.do("POST", "/v1/team", json=body))["link"]).path
        wanted = [f"a password of number {number}" for number in range(10)]
        answers = await asyncio.gather(*(http.post(path, data={"password": each}) for each in wanted))
        (winner,) = [each for each, answer in zip(wanted, answers, strict=True) if answer.status_code == 303]
        # Each is a try of a password, too, so that some are throttled.
        assert sorted({answer.status_code for answer in answers}) in ([303, 404], [303, 404, 429])
        assert [answer for answer in answers if answer.status_code != 303 and "set-cookie" in answer.headers] == []
        service.clock.pass_seconds(600)
        tried = [await tenants.log_in(service, "kim@north.example", each) for each in (winner, *wanted[:2])]
        assert [answer.status_code for answer in tried] == [200, *[200 if one == winner else 401 for one in wanted[:2]]]
        again = await http.post(path, data={"password": NEW})
        unknown = await http.post(f"/password/{'A' * 43}", data={"password": NEW})
        late = (await north.do("POST", "/v1/team", json={**body, "email": "lee@north.example"}))["link"]
        service.clock.pass_seconds(73 * 3600)
        expired = await http.post(httpx.URL(late).path, data={"password": NEW})
        assert [answer.status_code for answer in (again, unknown, expired)] == [404, 404, 404]


async def test_e10_no_field_of_a_request_changes_where_a_link_leads(service: WholeService) -> None:
    """E10: links for passwords and invitations, requested from both with another host in every field that names one."""
    evil = dict.fromkeys(HOST_FIELDS, "evil.example") | {"Forwarded": "host=evil.example", "X-Forwarded-Proto": "https"}
    async with tenants.settled(service, "north") as north:
        body = {"email": "kim@north.example", "role": "developer"}
        answer = await north.ask("POST", "/v1/team", json=body, headers=evil)
        assert answer.status_code == 201, answer.text
        assert "evil" not in answer.text
        kim = answer.json()["user"]["id"]
        answer = await north.ask("POST", f"/v1/team/{kim}/password-link", headers=evil)
        assert answer.is_success
        assert "evil" not in answer.text
        page = await north.browser.post(f"/team/{kim}/link", data={"csrf_token": north.csrf_token}, headers=evil)
        assert "/password/" in page.text
        assert "evil.example/password" not in page.text


async def test_e13_fifty_log_ins_at_once_leave_the_others_alone(
    service: WholeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E13: while the hashes of fifty users are being computed, a few at a time, everybody else is answered."""
    may_end, at_work, most_at_work = threading.Event(), [], []
    match = passwords._match

    def slow(*arguments: Any) -> str | None:
        at_work.append(arguments)
        most_at_work.append(len(at_work))
        may_end.wait(submission_server.TIMEOUT_SECONDS)
        at_work.pop()
        return match(*arguments)

    async with tenants.settled(service, "north") as north, tenants.client(service) as http:
        names = [f"person-{number}@north.example" for number in range(LOG_INS)]
        for name in names:
            await users.create(
                service.ctx, north.account_id, email=name, password=PASSWORD, role=callers.Role.DEVELOPER
            )
        monkeypatch.setattr(passwords, "_match", slow)
        bodies = [{"email": name, "password": PASSWORD} for name in names]
        under_way = [asyncio.create_task(http.post("/v1/auth/login", json=body)) for body in bodies]
        try:
            await parts.until(lambda: _is_waiting(service))
            for path in ("/v1/account", "/v1/messages", "/healthz"):
                assert (await north.ask("GET", path)).status_code == 200
            assert (await north.send())["status"] == "queued"
            assert (await north.browser.get("/")).status_code == 200
            assert not any(task.done() for task in under_way)
        finally:
            may_end.set()
        answers = await asyncio.gather(*under_way)
    assert {answer.status_code for answer in answers} == {200}
    assert max(most_at_work) <= passwords.THREADS


async def _is_waiting(service: WholeService) -> bool:
    """Whether all of them are in the queue."""
    return len(contexts.concrete(service.ctx.passwords, passwords.Passwords)._jobs._pending) == LOG_INS


async def test_e14_an_impossible_password_is_refused_before_it_is_hashed(
    service: WholeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E14: a megabyte, a character too many and NUL, wherever a password is taken; Argon2 is never asked."""
    async with tenants.settled(service, "north") as north, tenants.client(service) as http:
        link = httpx.URL((await north.do("POST", f"/v1/team/{north.things['person']}/password-link"))["link"]).path
        worked: list[object] = []
        monkeypatch.setattr(
            contexts.concrete(service.ctx.passwords, passwords.Passwords)._threads,
            "run",
            lambda _, work: worked.append(work),
        )
        for password in ("x" * 1_000_000, "x" * 257, "\U0001f4a9" * 257, "with \0 in it"):
            change = {"current_password": password, "new_password": password}
            answers = [
                await http.post("/v1/auth/login", json={"email": north.email, "password": password}),
                await http.post("/login", data={"email": north.email, "password": password}),
                await http.post(link, data={"password": password}),
                await north.ask("POST", "/v1/auth/password", json=change),
                await north.browser.post("/profile/password", data={"csrf_token": north.csrf_token, **change}),
            ]
            statuses = [answer.status_code for answer in answers]
            assert set(statuses) <= {400, 413}, (password[:10], statuses)
        assert worked == []


async def test_e8_what_a_disabled_user_created_sends_no_more(service: WholeService) -> None:
    """E8: an API key, an SMTP credential, and an SMTP session that is open; until somebody else answers for them."""
    tokens = {}
    for name, role in (("owner", callers.Role.OWNER), ("mallory", callers.Role.DEVELOPER)):
        email = f"{name}@example.com"
        await users.create(service.ctx, service.account.id, email=email, password=PASSWORD, role=role)
        async with tenants.client(service) as http:
            begun = await http.post("/v1/auth/login", json={"email": email, "password": PASSWORD})
        tokens[name] = {"Authorization": f"Bearer {begun.json()['token']}"}
    message = {"from": SENDER, "to": ADA, "subject": "Hi", "text": "x"}
    async with tenants.client(service) as http:
        made = (await http.post("/v1/credentials", json={"name": "own"}, headers=tokens["mallory"])).json()
        key = (await http.post("/v1/api-keys", json={"name": "own"}, headers=tokens["mallory"])).json()["secret"]
        pair = made["credential"]["username"], made["password"]

        async def send(number: int) -> tuple[int, int]:
            fields = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"key {number}"}
            by_key = await http.post("/emails", json=message, headers=fields)
            by_password = await http.post("/emails", json=message, auth=pair, headers={"Idempotency-Key": f"{number}"})
            return by_key.status_code, by_password.status_code

        async def change(**members: object) -> None:
            listed = (await http.get("/v1/team", headers=tokens["owner"])).json()["users"]
            (mallory,) = [one["id"] for one in listed if one["email"] == "mallory@example.com"]
            changed = await http.patch(f"/v1/team/{mallory}", json=members, headers=tokens["owner"])
            assert changed.status_code == 200, changed.text

        async def listed() -> set[tuple[object, object]]:
            keys = (await http.get("/v1/api-keys", headers=tokens["owner"])).json()["api_keys"]
            pairs = (await http.get("/v1/credentials", headers=tokens["owner"])).json()["credentials"]
            mine = [one for one in [*keys, *pairs] if one["name"] == "own"]
            return {(one["created_by_email"], one["disabled_at"] is not None) for one in mine}

        assert await send(1) == (202, 202)
        async with service.connect(log_in=False) as connection:
            assert (await connection.ask(plain("", *pair)))[0].startswith(b"235 ")
            await change(enabled=False)
            assert await send(2) == (401, 401)
            await connection.ask(BEGIN + b"DATA\r\n", replies=3)
            refused = await hand_over(connection, MESSAGE)
            assert refused.startswith("535 5.7.8 unauthorized: this SMTP credential is disabled because the user who")
        assert await listed() == {("mallory@example.com", True)}
        await change(enabled=True)
        assert await send(3) == (202, 202)
        await change(enabled=False, secrets="hand_over")
        assert await send(4) == (202, 202)
        assert await listed() == {("owner@example.com", False)}


async def test_e15_a_key_opens_from_no_other_place_and_not_when_it_is_revoked(service: WholeService) -> None:
    """E15: in the address, in a cookie, in a body, in fields of other products; wrong, unknown, revoked."""
    async with tenants.settled(service, "north") as north, tenants.client(service) as http:
        (key,) = [secret for secret in north.secrets if secret.startswith(installation_keys.API_KEY_PREFIX)]
        path = f"/emails/{north.things['message']}"
        bearer = {"Authorization": f"Bearer {key}"}
        assert (await http.get(path, headers=bearer)).status_code == 200
        for query in ("api_key", "key", "access_token", "token", "Authorization"):
            assert (await http.get(path, params={query: key})).status_code == 401
        for name in ("X-API-Key", "Api-Key", "Cookie", "Proxy-Authorization", "X-Authorization"):
            assert (await http.get(path, headers={name: f"Bearer {key}"})).status_code == 401
        changed = key[:-1] + ("a" if key[-1] != "a" else "b")
        for wrong in (changed, installation_keys.new_api_key(), key.lower(), key[:-1], key + "a", f"{key}\t"):
            if wrong.strip() != key:
                assert (await http.get(path, headers={"Authorization": f"Bearer {wrong}"})).status_code == 401
        await north.do("DELETE", f"/v1/api-keys/{north.things['api_key']}")
        assert (await http.get(path, headers=bearer)).status_code == 401


async def test_e19_a_cookie_alone_changes_nothing(service: WholeService) -> None:
    """E19: JSON as plain text, a form without its CSRF token, and another origin, with a valid session."""
    async with tenants.settled(service, "north") as north:
        before = (await north.do("GET", "/v1/credentials"))["credentials"]
        plain = {"Content-Type": "text/plain"}
        tries = [
            await north.browser.post("/v1/credentials", content=b'{"name": "x"}', headers=plain),
            await north.browser.post("/v1/credentials", json={"name": "x"}),
            await north.browser.post("/credentials", data={"name": "x"}),
            await north.browser.post("/credentials", content=f"csrf_token={north.csrf_token}&name=x", headers=plain),
            await north.browser.post("/credentials", data={"name": "x", "csrf_token": north.csrf_token[::-1]}),
            await north.browser.post(
                "/credentials",
                data={"name": "x", "csrf_token": north.csrf_token},
                headers={"Origin": "https://evil.example"},
            ),
            await north.browser.get("/credentials", params={"name": "x", "csrf_token": north.csrf_token}),
            await north.browser.put("/credentials", data={"name": "x", "csrf_token": north.csrf_token}),
        ]
        assert [answer.status_code for answer in tries] == [401, 401, 403, 400, 403, 403, 400, 405]
        assert (await north.do("GET", "/v1/credentials"))["credentials"] == before
        good = await north.browser.post("/credentials", data={"name": "x", "csrf_token": north.csrf_token})
        assert good.status_code in {200, 201, 303}
        assert len((await north.do("GET", "/v1/credentials"))["credentials"]) == len(before) + 1
