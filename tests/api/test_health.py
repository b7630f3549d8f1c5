"""`/healthz` is about the process, `/readyz` about whether it should get requests; neither asks who calls."""

import contextlib
import dataclasses

import pytest

from postroad import context, errors
from postroad.api import monitoring
from postroad.storage.engine import store
from postroad.web import routing
from tests.api.management import AccountClients, Switch


async def test_a_living_process_says_so_to_everybody(mine: AccountClients) -> None:
    response = await mine.nobody.get("/healthz")
    assert response.status_code == 200
    assert response.json() == {"status": "ok", "request_id": response.headers["x-request-id"]}


async def test_a_service_whose_store_answers_is_ready(mine: AccountClients) -> None:
    response = await mine.nobody.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {"status": "ready", "request_id": response.headers["x-request-id"]}


async def test_a_stopping_service_is_alive_but_not_ready(mine: AccountClients, switch: Switch) -> None:
    switch.draining = True
    response = await mine.nobody.get("/readyz")
    assert (response.status_code, response.json()["code"]) == (503, "service_unavailable")
    assert int(response.headers["retry-after"]) >= 1
    assert response.json()["request_id"] == response.headers["x-request-id"]
    assert (await mine.nobody.get("/healthz")).status_code == 200


class Away:
    """A store that fails in a way of the test's choice."""

    dialect = "sqlite"

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def reading(self, _party: str = "") -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        raise self._problem

    transaction = leasing = looking_up = scanning = reading

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "problem", [errors.ServiceUnavailable("away"), errors.TemporaryFailure("busy"), TimeoutError()], ids=repr
)
async def test_a_service_whose_store_does_not_answer_is_alive_but_not_ready(
    ctx: context.Context, problem: Exception
) -> None:
    broken = dataclasses.replace(ctx, store=Away(problem))
    alive, ready = monitoring.health_routes(lambda: False)
    request = routing.Request(id="req_1", headers=routing.Headers([]), client_address="")
    assert (await alive.handler(broken, request)).status == 200
    with pytest.raises(errors.ServiceUnavailable):
        await ready.handler(broken, request)
