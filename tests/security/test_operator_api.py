"""A customer reaches nothing of `/v1/operator`, whatever the credential, and no answer tells whether an id exists."""

import base64
import re
from typing import Final

import pytest

from postroad.services.people import users
from tests.api.operator.conftest import ALL_ROUTES
from tests.dashboard import sample_account
from tests.security import tenants
from tests.security.whole_service import WholeService

ROUTES: Final = ALL_ROUTES
UNKNOWN: Final = "acc_00000000000000ffffffffffffff"


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
async def test_an_owner_is_refused_alike_for_ids_of_others_and_unknown_ones_and_changes_nothing(
    service: WholeService,
) -> None:
    async with tenants.settled(service, "north") as north, tenants.settled(service, "south") as south:
        before = await sample_account.dump(service.ctx.settings.database.url)
        for route in ROUTES:
            answers = set()
            for value in (south.account_id, UNKNOWN, south.things["message"], "%00", "..%2f..", "x" * 500):
                # So that no rate is exceeded.
                service.clock.pass_seconds(0.1)
                answer = await north.ask(route.method, re.sub(r"\{\w+\}", value, route.path), json={"all": True})
                assert "south" not in answer.text
                answers.add((answer.status_code, answer.json()["code"], answer.json()["error"]))
            assert answers == {(403, "forbidden", "only operators of this installation may do this")}, route.path
        assert await sample_account.dump(service.ctx.settings.database.url) == before


async def test_no_other_credential_of_a_customer_is_enough(service: WholeService) -> None:
    async with tenants.settled(service, "north") as north, tenants.client(service) as http:
        made = await north.do("POST", "/v1/api-keys", json={"name": "all", "scopes": ["*"]})
        credential = await north.do("POST", "/v1/credentials", json={"name": "smtp"})
        pair = f"{credential['credential']['username']}:{credential['password']}"
        basic = base64.b64encode(pair.encode()).decode()
        given = {
            "a key for everything in the account": {"Authorization": f"Bearer {made['secret']}"},
            "an SMTP credential": {"Authorization": f"Basic {basic}"},
            "a session of the dashboard": {
                "Cookie": "; ".join(f"{one.name}={one.value}" for one in north.browser.cookies.jar)
            },
            "nothing": {},
        }
        for what, headers in given.items():
            for route in ROUTES:
                service.clock.pass_seconds(0.1)
                path = re.sub(r"\{\w+\}", UNKNOWN, route.path)
                answer = await http.request(route.method, path, headers=headers, json={})
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), (what, route.path)


async def test_a_customer_cannot_become_an_operator(service: WholeService) -> None:
    async with tenants.settled(service, "north") as north:
        for scopes in (["operator"], ["*", "operator"]):
            answer = await north.ask("POST", "/v1/api-keys", json={"name": "x", "scopes": scopes})
            assert answer.status_code == 400, answer.text
        answer = await north.ask("POST", "/v1/operator/operators", json={"email": north.email})
        assert answer.status_code == 403
        for body in ({"role": "operator"}, {"operator_since": "2026-01-01T00:00:00Z"}):
            path = f"/v1/team/{north.things['person']}"
            assert (await north.ask("PATCH", path, json=body)).status_code == 400
        assert await users.operators(service.ctx) == []


async def test_an_operator_is_served_by_the_running_service(service: WholeService) -> None:
    async with tenants.settled(service, "north") as north, tenants.settled(service, "south") as south:
        await users.add_operator(service.ctx, north.email)
        listed = await north.do("GET", "/v1/operator/accounts")
        assert {one["name"] for one in listed["accounts"]} >= {"north Ltd", "south Ltd"}
        # The role is in the installation alone: in accounts nothing has changed.
        answer = await north.ask("GET", f"/v1/messages/{south.things['message']}")
        assert answer.status_code == 404
