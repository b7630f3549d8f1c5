"""The interface, "Error object" and "Errors": each code that sending and reading can meet, with its status.

Not to be met here: `internal_error` (a bug, by definition), `temporary_failure` and `idempotency_in_progress` (a matter
of moments: tests/mail/accept/test_submit.py), `rate_limited` and `warmup_limited` (test_limits.py) and
`service_unavailable` (test_unavailability.py).
"""

from collections.abc import Callable

import httpx
import pytest

from tests.conformance import live_service

SENDING = {202, 400, 401, 402, 403, 409, 413, 429, 500, 503}
READING = {200, 401, 404}
Ask = Callable[[live_service.Service], httpx.Response]


def new_account(service: live_service.Service, *, amount: int = 10) -> live_service.Account:
    """An account of its own for a test that changes its state."""
    domain = f"{live_service.new_key()}.example"
    return service.installation.ask(lambda ctx: live_service.make_account(ctx, domain, domain=domain, amount=amount))


def suspended(service: live_service.Service) -> httpx.Response:
    account = new_account(service)
    service.installation.text("account", "suspend", account.id, "--reason", "too many bounces")
    return service.post(live_service.message(from_=f"a@{account.domain}"), authorization=account.api_key)


def too_poor(service: live_service.Service) -> httpx.Response:
    account = new_account(service, amount=1)
    body = live_service.message(from_=f"a@{account.domain}", to=["ada@example.org", "bob@example.org"])
    return service.post(body, authorization=account.api_key)


def other_body(service: live_service.Service) -> httpx.Response:
    key = live_service.new_key()
    service.post(live_service.message(), key=key)
    return service.post(live_service.message(text="Other"), key=key)


def existing_domain(service: live_service.Service) -> httpx.Response:
    fields = {"Authorization": service.mine.owner}
    return service.client.post("/v1/domains", json={"name": service.mine.domain}, headers=fields)


CODES: dict[str, tuple[int, Ask]] = {
    "invalid_request": (400, lambda service: service.post(live_service.message(to="bob@"))),
    "unauthorized": (401, lambda service: service.post(live_service.message(), authorization="Bearer nobody")),
    "insufficient_credits": (402, too_poor),
    "forbidden": (403, lambda service: service.post(live_service.message(from_="a@example.org"))),
    "account_suspended": (403, suspended),
    "not_found": (404, lambda service: service.get("/emails/em_0")),
    "conflict": (409, existing_domain),
    "idempotency_conflict": (409, other_body),
    "payload_too_large": (413, lambda service: service.post(live_service.message(text="x\n" * 5_300_000))),
}


@pytest.mark.parametrize("code", CODES)
def test_a_code_has_its_status_and_the_error_object(service: live_service.Service, code: str) -> None:
    """The table "Error object" and the list of codes: `error`, `code`, `request_id`, and the header."""
    status, ask = CODES[code]
    live_service.check_refusal(ask(service), status, code)


def test_sending_and_reading_have_no_other_statuses() -> None:
    """The table "Statuses by endpoint": those of the codes above, and no 404, 415 or 422 on a send."""
    sending = {status for code, (status, _) in CODES.items() if code not in {"not_found", "conflict"}}
    assert sending <= SENDING
    assert CODES["not_found"][0] in READING


def test_a_sentence_names_the_field_and_what_is_wrong(service: live_service.Service) -> None:
    """Row `error`: a human-readable message."""
    assert service.refuse(to=["a@example.org"] * 3 + ["bob@"]).startswith("to[3]: 'bob@' is not an email address")


def test_a_sentence_holds_no_secret(service: live_service.Service) -> None:
    """Row `error`: safe to show and to log."""
    password = "hunter2-hunter2"
    response = service.client.get("/emails/em_0", headers={"Authorization": f"Bearer {password}"})
    assert password not in live_service.check_refusal(response, 401, "unauthorized")


def test_a_suspended_account_is_told_why_and_still_reads(service: live_service.Service) -> None:
    """Code `account_suspended`: it may not send, but it may read; when it is resumed, it sends again."""
    account = new_account(service)
    body = live_service.message(from_=f"a@{account.domain}")
    accepted = service.post(body, authorization=account.api_key).json()
    service.installation.text("account", "suspend", account.id, "--reason", "too many bounces")
    refused = service.post(body, authorization=account.api_key)
    assert "too many bounces" in live_service.check_refusal(refused, 403, "account_suspended")
    assert service.get(f"/emails/{accepted['id']}", authorization=account.reading_key).status_code == 200
    service.installation.text("account", "resume", account.id)
    assert service.post(body, authorization=account.api_key).status_code == 202


def test_the_last_credit_is_spent_and_not_one_more(service: live_service.Service) -> None:
    """Code `insufficient_credits`: fewer available credits than unique recipients."""
    account = new_account(service, amount=3)
    body = live_service.message(from_=f"a@{account.domain}")
    two, three = ["a@example.org", "b@example.org"], ["a@example.org", "b@example.org", "c@example.org"]
    assert service.post(body | {"to": two}, authorization=account.api_key).status_code == 202
    before = service.counts()
    refused = service.post(body | {"to": three}, authorization=account.api_key)
    assert "3 credits" in live_service.check_refusal(refused, 402, "insufficient_credits")
    live_service.check_refusal(
        service.post(body | {"to": two}, authorization=account.api_key), 402, "insufficient_credits"
    )
    assert service.counts() == before
    assert service.post(body, authorization=account.api_key).status_code == 202


def test_what_was_accepted_is_replayed_whatever_happened_since(service: live_service.Service) -> None:
    """Under "Conditions that are shown": a retry with the same key and body is safe, also when all else is refused."""
    account = new_account(service, amount=1)
    body, key = live_service.message(from_=f"a@{account.domain}"), live_service.new_key()
    first = service.post(body, key=key, authorization=account.api_key)
    live_service.check_refusal(service.post(body, authorization=account.api_key), 402, "insufficient_credits")
    domain = service.get("/v1/domains", authorization=account.owner).json()["domains"][0]["id"]
    service.client.delete(f"/v1/domains/{domain}", headers={"Authorization": account.owner})
    live_service.check_refusal(service.post(body, authorization=account.api_key), 403, "forbidden")
    service.installation.text("account", "suspend", account.id, "--reason", "test")
    live_service.check_refusal(service.post(body, authorization=account.api_key), 403, "account_suspended")
    again = service.post(body, key=key, authorization=account.api_key)
    assert (again.status_code, again.content) == (202, first.content)
    other = service.post(body | {"text": "Other"}, key=key, authorization=account.api_key)
    live_service.check_refusal(other, 409, "idempotency_conflict")
