"""`/v1/operator/operators`: operators make others operators, and one who can log in stays."""

from postroad import context
from postroad.model.people import callers
from postroad.services.people import users
from tests.api import management
from tests.api.operator.conftest import Operator

PATH = "/v1/operator/operators"


async def test_a_user_becomes_an_operator_and_is_one_no_longer(
    ctx: context.Context, operator: Operator, theirs: management.AccountClients
) -> None:
    user, _ = await users.create(
        ctx, theirs.account_id, email="ada@their.example", password=None, role=callers.Role.DEVELOPER
    )
    # The owners of the other account may have created this user with anybody's address.
    refused = await operator.http.post(PATH, json={"email": "Ada@Their.example"})
    assert (refused.status_code, theirs.account_id in refused.json()["error"]) == (409, True)
    made = await operator.http.post(PATH, json={"email": "Ada@Their.example", "account_id": theirs.account_id})
    assert made.status_code == 201
    assert (made.json()["operator"]["id"], made.json()["link"]) == (user.id, None)
    listed = (await operator.http.get(PATH)).json()["operators"]
    assert {one["id"] for one in listed} == {operator.user_id, user.id}
    assert (await operator.http.delete(f"{PATH}/{user.id}")).status_code == 204
    assert (await operator.http.delete(f"{PATH}/{user.id}")).status_code == 404


async def test_an_unknown_person_is_invited_by_a_link(ctx: context.Context, operator: Operator) -> None:
    made = (await operator.http.post(PATH, json={"email": "new@example.org"})).json()
    assert "/password/" in made["link"]
    assert (made["operator"]["account_id"], made["operator"]["joined_at"]) == (operator.account_id, None)
    user = await users.by_email(ctx, "new@example.org")
    assert user is not None
    assert (user.role, user.operator_since is not None) == ("read_only", True)
