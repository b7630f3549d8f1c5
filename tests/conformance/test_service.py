"""The interface, "What the service does" and "Versioning": the sentences that are not a row of any table."""

import pytest

from tests.conformance import live_service


def test_accepting_queues_and_does_not_deliver(service: live_service.Service) -> None:
    """Delivery is asynchronous: a 202 means accepted, and the message is `queued`."""
    response = service.post(live_service.message())
    assert (response.status_code, response.json()["status"]) == (202, "queued")


def test_accepting_reserves_one_credit_for_each_unique_recipient(service: live_service.Service) -> None:
    """On accept, the service reserves 1 credit per unique recipient across `to`, `cc` and `bcc`."""
    before = service.balance()
    service.accept(to=["a@example.org", "b@example.org"], cc="A@example.org", bcc=["b@example.org", "c@example.org"])
    assert service.balance() == (before[0] - 3, before[1] + 3)


def test_the_ledger_has_the_reservation(service: live_service.Service) -> None:
    """Credits: each movement is in the ledger, with its message, and the ledger sums to the balances."""
    accepted = service.accept(to=["a@example.org", "b@example.org"])
    newest = service.get("/v1/account/ledger?limit=1", authorization=service.mine.owner).json()["entries"][0]
    told = {name: newest[name] for name in ("kind", "available", "reserved", "message_id")}
    assert told == {"kind": "reserve", "available": -2, "reserved": 2, "message_id": accepted["id"]}
    service.counts()  # asserts that the store is consistent


def test_without_a_webhook_all_works_as_usual(service: live_service.Service) -> None:
    """Without a webhook URL, sending still returns 202, logs are kept and polling works."""
    accepted = service.accept(tags=["log"])
    assert service.read(accepted["id"])["id"] == accepted["id"]
    listed = service.get("/v1/messages?limit=1", authorization=service.mine.owner).json()["messages"]
    assert [one["id"] for one in listed] == [accepted["id"]]


@pytest.mark.parametrize("scheme", ["basic", "owner"])
def test_what_the_client_libraries_do_works(service: live_service.Service, scheme: str) -> None:
    """Clients call only `POST /emails` and `GET /emails/{id}`, with Basic or a JWT."""
    authorization = getattr(service.mine, scheme)
    accepted = service.post(live_service.message(), authorization=authorization).json()
    assert service.get(f"/emails/{accepted['id']}", authorization=authorization).json()["status"] == "queued"


def test_email_endpoints_have_no_version_and_management_is_under_v1(service: live_service.Service) -> None:
    """Versioning: no version segment for email endpoints; the dashboard's are under `/v1`."""
    paths = service.client.get("/openapi.json").json()["paths"]
    assert {"/emails", "/emails/{id}"} <= set(paths)
    outside = {path for path in paths if not path.startswith(("/v1/", "/emails"))}
    assert outside <= {"/healthz", "/readyz", "/openapi.json", "/docs"}


def test_the_description_lists_the_documented_statuses(service: live_service.Service) -> None:
    """Statuses by endpoint: the published description says the same."""
    paths = service.client.get("/openapi.json").json()["paths"]
    sending = {int(status) for status in paths["/emails"]["post"]["responses"]}
    reading = {int(status) for status in paths["/emails/{id}"]["get"]["responses"]}
    assert sending == {202, 400, 401, 402, 403, 409, 413, 429, 500, 503}
    assert {200, 401, 404} <= reading <= {200, 401, 404, 500, 503}
