"""The interface, "POST /emails" on the Idempotency-Key, and docs/api.md, "Retrying"."""

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.conformance import live_service

BODY = live_service.message(to=["ada@example.org", "bob@example.org"], headers={"X-A": "1", "X-B": "2"})


def replayed(response: httpx.Response) -> bool:
    return "idempotent-replayed" in response.headers and response.headers["idempotent-replayed"] == "true"


def check_conflict(response: httpx.Response) -> None:
    assert "Idempotency-Key" in live_service.check_refusal(response, 409, "idempotency_conflict")


@pytest.mark.parametrize("key", ["k", "x" * 255, "order 1/2; \"a\", 'b' \\ ~", "0", "a:b", "ü"])
def test_a_key_is_a_text_of_the_clients_choice(service: live_service.Service, key: str) -> None:
    """Idempotency-Key: string, 1 to 255 characters, chosen by the client."""
    own = f"{live_service.new_key()}{key}"[-255:] if len(key) < 255 else live_service.new_key().ljust(255, "x")
    fields = [(b"Authorization", service.mine.basic.encode()), (b"Idempotency-Key", own.encode())]
    first, second = (service.client.post("/emails", json=BODY, headers=fields) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.content == second.content


@pytest.mark.parametrize("key", [None, "", "x" * 256])
def test_a_key_is_required(service: live_service.Service, key: str | None) -> None:
    """Under "Conditions that are shown": a missing key makes the request invalid; so does an empty or too long one."""
    fields = {"Authorization": service.mine.basic} | ({} if key is None else {"Idempotency-Key": key})
    response = service.client.post("/emails", json=BODY, headers=fields)
    assert live_service.check_refusal(response, 400, "invalid_request").startswith("Idempotency-Key: ")


def test_a_key_is_sent_once(service: live_service.Service) -> None:
    """Idempotency-Key: one string; two of them would be read in two ways."""
    fields = [("Authorization", service.mine.basic), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    live_service.check_refusal(service.client.post("/emails", json=BODY, headers=fields), 400, "invalid_request")


def test_a_retry_is_safe(service: live_service.Service) -> None:
    """Retrying with the same key and the same body is safe: the same answer, byte for byte, and no more happens."""
    key = live_service.new_key()
    first = service.post(BODY, key=key)
    counts, balance = service.counts(), service.balance()
    again = service.post(BODY, key=key)
    assert (again.status_code, again.content) == (202, first.content)
    assert again.headers["x-request-id"] == first.headers["x-request-id"] == first.json()["request_id"]
    assert (replayed(first), replayed(again)) == (False, True)
    assert (service.counts(), service.balance()) == (counts, balance)


def test_white_space_and_the_order_of_members_do_not_matter(service: live_service.Service) -> None:
    """The same body is the same JSON value."""
    key = live_service.new_key()
    first = service.post(BODY, key=key)
    reordered = dict(reversed(BODY.items())) | {"headers": {"X-B": "2", "X-A": "1"}}
    for body in (
        json.dumps(reordered, indent=4),
        json.dumps(BODY, ensure_ascii=False),
        json.dumps(BODY, separators=(",", ":")),
    ):
        again = service.post(body.encode(), key=key)
        assert again.content == first.content
    escaped = json.dumps(BODY).replace("Hello", "\\u0048ello")
    assert service.post(escaped.encode(), key=key).content == first.content


@pytest.mark.parametrize("changes", [{"cc": None}, {"cc": []}, {"bcc": None, "tags": []}, {"reply_to": None}])
def test_a_member_that_is_null_or_empty_is_like_one_that_is_absent(
    service: live_service.Service, changes: dict[str, object]
) -> None:
    """The same request is one with the same meaning."""
    key = live_service.new_key()
    first = service.post(BODY, key=key)
    again = service.post(BODY | changes, key=key)
    assert (again.status_code, again.content) == (202, first.content)


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "Other"},
        {"to": ["bob@example.org", "ada@example.org"]},
        {"cc": "eve@example.org"},
        {"headers": {"X-A": "1"}},
        {"to": "ada@example.org"},
    ],
)
def test_another_body_is_a_conflict(service: live_service.Service, changes: dict[str, object]) -> None:
    """A key that is reused with a different body: 409, and the first message stands."""
    key = live_service.new_key()
    first = service.post(BODY, key=key)
    before = service.balance()
    check_conflict(service.post(BODY | changes, key=key))
    assert service.balance() == before
    assert service.post(BODY, key=key).content == first.content


def test_a_refused_request_does_not_use_up_its_key(service: live_service.Service) -> None:
    """A request that failed leaves nothing: the key may be used again, with any body."""
    key = live_service.new_key()
    before = service.counts()
    live_service.check_refusal(service.post(BODY | {"to": "bob@"}, key=key), 400, "invalid_request")
    live_service.check_refusal(service.post(BODY | {"from": "a@example.net"}, key=key), 403, "forbidden")
    live_service.check_refusal(service.post(BODY | {"template": "unknown"}, key=key), 400, "invalid_request")
    assert service.counts() == before
    first = service.post(BODY | {"text": "At last"}, key=key)
    assert (first.status_code, replayed(first)) == (202, False)
    check_conflict(service.post(BODY, key=key))


def test_a_key_belongs_to_the_smtp_credential(service: live_service.Service) -> None:
    """Scoped to the SMTP credential: shared by its API keys and the account's tokens, and by no other account."""
    key = live_service.new_key()
    first = service.post(BODY, key=key)
    for authorization in (service.mine.api_key, service.mine.reading_key, service.mine.owner):
        again = service.post(BODY, key=key, authorization=authorization)
        assert (again.content, replayed(again)) == (first.content, True)
    other = service.post(BODY | {"from": "shop@example.net"}, key=key, authorization=service.theirs.basic)
    assert (other.status_code, replayed(other)) == (202, False)


def test_two_credentials_of_one_account_do_not_share_keys(service: live_service.Service) -> None:
    """Scoped to the SMTP credential, not to the account."""
    owner = {"Authorization": service.mine.owner}
    made = service.client.post("/v1/credentials", json={"name": "Second"}, headers=owner).json()["credential"]
    issued = service.client.post("/v1/api-keys", json={"name": "K", "credential_id": made["id"]}, headers=owner).json()
    key = live_service.new_key()
    first = service.post(BODY, key=key)
    other = service.post(BODY | {"text": "Other"}, key=key, authorization=f"Bearer {issued['secret']}")
    assert (other.status_code, replayed(other)) == (202, False)
    assert other.json()["id"] != first.json()["id"]


def test_the_rules_of_the_fields_come_before_the_key(service: live_service.Service) -> None:
    """The order of checks: a used key with a body that is invalid is an invalid request."""
    key = live_service.new_key()
    service.post(BODY, key=key)
    live_service.check_refusal(service.post(BODY | {"to": "bob@"}, key=key), 400, "invalid_request")


@pytest.mark.parametrize("text", ["Hi", "Zeile für Zeile\n" * 20_000], ids=["small", "large"])
def test_fifty_identical_requests_at_once_are_one_message(service: live_service.Service, text: str) -> None:
    """Retrying is safe even while the first request runs: the same 202, or 409 and a second later again."""
    key, body = live_service.new_key(), BODY | {"text": text}
    before, balance = service.counts(), service.balance()
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda _: service.post(body, key=key), range(50)))
    accepted = [answer for answer in answers if answer.status_code == 202]
    assert len({answer.content for answer in accepted}) == 1
    assert sum(not replayed(answer) for answer in accepted) == 1
    for answer in answers:
        if answer.status_code != 202:
            live_service.check_refusal(answer, 409, "idempotency_in_progress")
            assert answer.headers["retry-after"] == "1"
    grown = {name: count - before[name] for name, count in service.counts().items() if count != before[name]}
    assert grown == {"messages": 1, "recipients": 2, "ledger_entries": 1, "idempotency_keys": 1}
    assert service.balance() == (balance[0] - 2, balance[1] + 2)
    assert service.post(body, key=key).content == accepted[0].content
