"""The interface, "Authentication": each scheme on each kind of route, and everything that is no valid credential."""

import base64
import time
import warnings
from collections.abc import Callable

import httpx
import jwt
import pytest

from postroad.keys import installation_keys
from tests.cli import cli_runner
from tests.conformance import live_service

ACCEPTED, OK, UNAUTHORIZED, FORBIDDEN = 202, 200, 401, 403
# scheme: status of a send, of reading a message, of the account's own routes under /v1
SCHEMES: dict[str, tuple[Callable[[live_service.Account], str], int, int, int]] = {
    "HTTP Basic": (lambda mine: mine.basic, ACCEPTED, OK, UNAUTHORIZED),
    "Bearer API key": (lambda mine: mine.api_key, ACCEPTED, UNAUTHORIZED, UNAUTHORIZED),
    "Bearer API key that may read": (lambda mine: mine.reading_key, ACCEPTED, OK, UNAUTHORIZED),
    "Bearer JWT": (lambda mine: mine.owner, ACCEPTED, OK, OK),
    "Bearer JWT of a person who may only look": (lambda mine: mine.reader, FORBIDDEN, OK, OK),
}
CODES = {UNAUTHORIZED: "unauthorized", FORBIDDEN: "forbidden"}


def check(response: httpx.Response, status: int) -> None:
    if status in CODES:
        live_service.check_refusal(response, status, CODES[status])
    assert response.status_code == status


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme_is_for_what_the_table_says(service: live_service.Service, scheme: str) -> None:
    """The table "Authentication": which scheme is used for which endpoint."""
    choose, send, read, manage = SCHEMES[scheme]
    authorization = choose(service.mine)
    message_id = service.accept()["id"]
    check(service.post(live_service.message(), authorization=authorization), send)
    check(service.get(f"/emails/{message_id}", authorization=authorization), read)
    check(service.get("/v1/account", authorization=authorization), manage)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_name_of_a_scheme_is_not_case_sensitive(service: live_service.Service, scheme: str) -> None:
    """The column "Header": the scheme's name, as RFC 9110 reads it."""
    choose, send, _, _ = SCHEMES[scheme]
    name, _, secret = choose(service.mine).partition(" ")
    for written in (name.lower(), name.upper()):
        check(service.post(live_service.message(), authorization=f"{written} {secret}"), send)


def test_an_api_key_carries_the_live_prefix(service: live_service.Service) -> None:
    """Row "Bearer API key": live keys carry a fixed live-key prefix."""
    assert service.mine.api_key.startswith("Bearer pr_live_")


def test_an_api_key_that_may_not_read_is_told_so(service: live_service.Service) -> None:
    """Row "Bearer API key": for `POST /emails`."""
    response = service.get(f"/emails/{service.accept()['id']}", authorization=service.mine.api_key)
    assert "'read'" in live_service.check_refusal(response, 401, "unauthorized")


def test_a_wrong_kind_of_credential_is_told_which_kind_is_needed(service: live_service.Service) -> None:
    """Under the endpoints of the dashboard: these require a JWT; the SMTP password is not accepted."""
    for authorization in (service.mine.basic, service.mine.api_key):
        response = service.get("/v1/account", authorization=authorization)
        assert "token" in live_service.check_refusal(response, 401, "unauthorized")


@pytest.mark.parametrize("method, path", [("POST", "/emails"), ("GET", "/emails/em_1"), ("GET", "/v1/account")])
def test_a_missing_credential_is_unauthorized(service: live_service.Service, method: str, path: str) -> None:
    """A missing credential gives a 401 error object, and names the schemes that the route takes."""
    response = service.client.request(method, path)
    assert live_service.check_refusal(response, 401, "unauthorized").startswith("Authorization: ")
    schemes = [value.split()[0] for value in response.headers.get_list("www-authenticate")]
    assert "Bearer" in " ".join(schemes)
    assert ("Basic" in " ".join(schemes)) == (not path.startswith("/v1"))


def _basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def _pair(mine: live_service.Account) -> tuple[str, str]:
    username, _, password = base64.b64decode(mine.basic.removeprefix("Basic ")).decode().partition(":")
    return username, password


def _unknown_key() -> str:
    return installation_keys.new_api_key()


def _forged(
    mine: live_service.Account, *, key: bytes | None = None, algorithm: str = "HS256", **changes: object
) -> str:
    """The owner's token with other claims, signed anew; without a key of its own, with the installation's."""
    claims = jwt.decode(mine.owner.removeprefix("Bearer "), options={"verify_signature": False})
    if key is None:
        key = installation_keys.Keys.derive(cli_runner.SECRET_KEY.encode()).token
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the length of the key
        return jwt.encode({**claims, **changes}, "" if algorithm == "none" else key, algorithm=algorithm)


def _tampered(mine: live_service.Account) -> str:
    """The reader's signature under the owner's claims."""
    head, claims, _ = mine.owner.removeprefix("Bearer ").split(".")
    return f"{head}.{claims}.{mine.reader.rpartition('.')[2]}"


INVALID: dict[str, Callable[[live_service.Account], str]] = {
    "no scheme": lambda mine: mine.basic.removeprefix("Basic "),
    "an unknown scheme": lambda mine: mine.basic.replace("Basic", "Digest"),
    "Basic alone": lambda _: "Basic",
    "Basic that is not base64": lambda _: "Basic !!!",
    "Basic without a colon": lambda _: _basic("username"),
    "Basic that is not UTF-8": lambda _: f"Basic {base64.b64encode(bytes([255, 58, 255])).decode()}",
    "an unknown username": lambda mine: _basic(f"nobody:{_pair(mine)[1]}"),
    "a wrong password": lambda mine: _basic(f"{_pair(mine)[0]}:wrong"),
    "an empty password": lambda mine: _basic(f"{_pair(mine)[0]}:"),
    "username and password exchanged": lambda mine: _basic(":".join(reversed(_pair(mine)))),
    "a person's email and password": lambda mine: _basic(f"owner@{mine.domain}:{live_service.PASSWORD}"),
    "an API key as a password": lambda mine: _basic(f"{_pair(mine)[0]}:{mine.api_key.removeprefix('Bearer ')}"),
    "Bearer alone": lambda _: "Bearer",
    "two credentials": lambda mine: f"{mine.owner}, {mine.basic}",
    "an SMTP password as a token": lambda mine: f"Bearer {_pair(mine)[1]}",
    "an API key with a wrong checksum": lambda mine: mine.api_key[:-1] + ("a" if mine.api_key[-1] != "a" else "b"),
    "an API key cut off": lambda mine: mine.api_key[:-1],
    "an API key that nobody has": lambda _: f"Bearer {_unknown_key()}",
    "a JWT signed with another key": lambda mine: f"Bearer {_forged(mine, key=bytes(range(32)))}",
    "a JWT without a signature": lambda mine: f"Bearer {_forged(mine, algorithm='none')}",
    "a JWT with the signature cut off": lambda mine: mine.owner.rpartition(".")[0] + ".",
    "a JWT with a signature of another": lambda mine: f"Bearer {_tampered(mine)}",
    "a JWT of another algorithm": lambda mine: f"Bearer {_forged(mine, algorithm='HS512')}",
    "a JWT that has expired": lambda mine: f"Bearer {_forged(mine, exp=int(time.time()) - 10)}",
    "a JWT that never expires": lambda mine: f"Bearer {_forged(mine, exp=None)}",
    "a JWT for another account": lambda mine: f"Bearer {_forged(mine, acc='acc_' + 28 * '0')}",
    "a JWT for nobody": lambda mine: f"Bearer {_forged(mine, sub='usr_' + 28 * '0')}",
    "no JWT at all": lambda _: "Bearer a.b.c",
    "a very long token": lambda _: "Bearer " + "a" * 20_000,
}


def test_forging_works_with_the_right_key(service: live_service.Service) -> None:
    """What follows refuses tokens for the named reason: with nothing changed, one signed in the same way is taken."""
    check(service.post(live_service.message(), authorization=f"Bearer {_forged(service.mine)}"), ACCEPTED)


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_credential_is_unauthorized(service: live_service.Service, case: str) -> None:
    """An invalid credential gives a 401 error object, on the send and on the status endpoint; nothing is stored."""
    before = service.balance()
    message_id = service.accept()["id"]
    authorization = INVALID[case](service.mine)
    check(service.post(live_service.message(), authorization=authorization), UNAUTHORIZED)
    check(service.get(f"/emails/{message_id}", authorization=authorization), UNAUTHORIZED)
    assert service.balance() == (before[0] - 1, before[1] + 1)


def test_a_credential_in_the_url_is_not_read(service: live_service.Service) -> None:
    """The column "Header": a credential travels in `Authorization` alone."""
    key = service.mine.api_key.removeprefix("Bearer ")
    for query in (f"?api_key={key}", f"?access_token={service.mine.owner.removeprefix('Bearer ')}"):
        headers = {"Idempotency-Key": live_service.new_key()}
        check(service.client.post(f"/emails{query}", json=live_service.message(), headers=headers), UNAUTHORIZED)


def test_authorization_sent_twice_is_unauthorized(service: live_service.Service) -> None:
    """One credential a request: with two, nobody could say who calls."""
    fields = [("Authorization", service.mine.basic), ("Authorization", service.theirs.basic)]
    check(service.client.get("/emails/em_1", headers=fields), UNAUTHORIZED)


def test_a_revoked_credential_is_unauthorized(service: live_service.Service) -> None:
    """An invalid credential: a revoked SMTP credential stops, and its API keys with it."""
    owner = {"Authorization": service.mine.owner}
    made = service.client.post("/v1/credentials", json={"name": "Short-lived"}, headers=owner).json()
    wanted = {"name": "Short-lived", "credential_id": made["credential"]["id"]}
    secret = service.client.post("/v1/api-keys", json=wanted, headers=owner).json()["secret"]
    callers = [_basic(f"{made['credential']['username']}:{made['password']}"), f"Bearer {secret}"]
    for authorization in callers:
        check(service.post(live_service.message(), authorization=authorization), ACCEPTED)
    assert service.client.delete(f"/v1/credentials/{made['credential']['id']}", headers=owner).status_code == 204
    for authorization in callers:
        check(service.post(live_service.message(), authorization=authorization), UNAUTHORIZED)


def test_authentication_comes_before_everything_about_the_body(service: live_service.Service) -> None:
    """The order of checks: a stranger learns nothing about what would be accepted."""
    response = service.client.post("/emails", content=b"not JSON", headers={"Authorization": "Bearer x"})
    check(response, UNAUTHORIZED)


def test_a_sender_domain_of_another_account_is_forbidden(service: live_service.Service) -> None:
    """The sender domain must be one that the account has registered, whichever credential is used."""
    body = live_service.message(from_=f"shop@{service.theirs.domain}")
    for authorization in (service.mine.basic, service.mine.api_key, service.mine.owner):
        check(service.post(body, authorization=authorization), FORBIDDEN)
    check(service.post(body, authorization=service.theirs.basic), ACCEPTED)
