"""Bad days: the store goes away, the service is killed. What was acknowledged is neither lost nor doubled."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.cli import operating
from tests.conformance import running
from tests.postgres_server import PostgresServer

SENDERS = 8
MESSAGES = 120
# The service is killed when this many messages are acknowledged; as many as there are senders are on their way then.
KILLED_AFTER = 40


def test_a_store_that_is_away_is_told_and_recovers_by_itself(tmp_path: Path) -> None:
    """Status 503 of both endpoints, code `service_unavailable`, with `Retry-After`; then all is as before."""
    with (
        PostgresServer() as server,
        running.running(tmp_path, url=server.create_database(), has_outages=True) as service,
    ):
        first, key = service.post(running.message(), key="before"), running.new_key()
        before = service.counts()
        server.stop()
        for response in (service.post(running.message(), key=key), service.get(f"/emails/{first.json()['id']}")):
            running.check_refusal(response, 503, "service_unavailable")
            assert int(response.headers["retry-after"]) >= 1
        running.check_refusal(service.client.get("/readyz"), 503, "service_unavailable")
        assert service.client.get("/healthz").status_code == 200
        server.start()
        assert service.counts() == before
        assert service.post(running.message(), key="before").content == first.content
        assert service.post(running.message(text="Any body"), key=key).status_code == 202
        assert service.client.get("/readyz").status_code == 200


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_killed_service_has_lost_nothing_that_it_acknowledged(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    """A 202 means accepted: after kill -9 a key replays the same answer, or nothing of it exists and it is free."""
    url = f"sqlite:///{tmp_path}/postroad.db" if engine == "sqlite" else request.getfixturevalue("postgres_url")
    with running.installed(tmp_path, url=url) as (installation, mine, theirs):
        acknowledged = send_until_killed(installation, mine)
        assert KILLED_AFTER <= len(acknowledged) < MESSAGES
        with running.process(installation) as (base_url, _), running.client_of(base_url) as client:
            service = running.Service(base_url, installation, client, mine, theirs)
            assert len(acknowledged) <= service.counts()["messages"] <= len(acknowledged) + SENDERS
            for number in range(MESSAGES):
                again = service.post(message(number), key=f"key-{number}", authorization=mine.api_key)
                assert again.status_code == 202
                assert again.content == acknowledged.get(number, again.content)
            assert service.counts()["messages"] == service.counts()["idempotency_keys"] == MESSAGES


def message(number: int) -> dict[str, object]:
    return running.message(text=f"Message {number}")


def send_until_killed(installation: operating.Installation, mine: running.Account) -> dict[int, bytes]:
    """Send from several threads, kill the service in the middle of it; the answers that arrived."""
    acknowledged: dict[int, bytes] = {}
    with (
        running.process(installation, ends_with=-signal.SIGKILL) as (base_url, process),
        running.client_of(base_url) as client,
        ThreadPoolExecutor(SENDERS) as threads,
    ):

        def send(number: int) -> None:
            fields = {"Authorization": mine.api_key, "Idempotency-Key": f"key-{number}"}
            try:
                response = client.post("/emails", json=message(number), headers=fields)
            except httpx.TransportError:
                return
            assert response.status_code == 202
            acknowledged[number] = response.content
            if len(acknowledged) == KILLED_AFTER:
                os.kill(process.pid, signal.SIGKILL)

        list(threads.map(send, range(MESSAGES)))
    return acknowledged
