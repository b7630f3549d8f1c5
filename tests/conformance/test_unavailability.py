"""The interface, status 503: the response while the store is unavailable. Other outages: tests/reliability."""

from pathlib import Path

from tests.conformance import live_service
from tests.postgres_server import PostgresServer


def test_a_store_that_is_unavailable_is_reported_and_recovers_by_itself(tmp_path: Path) -> None:
    """Status 503 of both endpoints, code `service_unavailable`, with `Retry-After`; then all is as before."""
    with (
        PostgresServer() as server,
        live_service.running(tmp_path, url=server.create_database(), has_outages=True) as service,
    ):
        first, key = service.post(live_service.message(), key="before"), live_service.new_key()
        before = service.counts()
        server.stop()
        for response in (service.post(live_service.message(), key=key), service.get(f"/emails/{first.json()['id']}")):
            live_service.check_refusal(response, 503, "service_unavailable")
            assert int(response.headers["retry-after"]) >= 1
        live_service.check_refusal(service.client.get("/readyz"), 503, "service_unavailable")
        assert service.client.get("/healthz").status_code == 200
        server.start()
        assert service.counts() == before
        assert service.post(live_service.message(), key="before").content == first.content
        assert service.post(live_service.message(text="Any body"), key=key).status_code == 202
        assert service.client.get("/readyz").status_code == 200
