"""`/v1/operator/audit-log`: one log of all accounts and of the installation, in pages."""

from postroad import context
from postroad.services.accounts import account_registry
from tests import contexts
from tests.api import management
from tests.api.operator.conftest import Operator

PATH = "/v1/operator/audit-log"


async def test_entries_of_all_accounts_come_in_one_order_and_in_pages(
    ctx: context.Context, clock: contexts.Clock, operator: Operator, theirs: management.AccountClients
) -> None:
    for number in range(4):
        clock.pass_seconds(1)
        account_id = (operator.account_id, theirs.account_id)[number % 2]
        await account_registry.suspend(ctx, account_id, f"reason {number}")
    clock.pass_seconds(1)
    seen: list[tuple[str, str]] = []
    before = None
    for _ in range(3):
        query = {"limit": "2", "action": "account.suspended", **({"before": before} if before else {})}
        page = (await operator.http.get(PATH, params=query)).json()
        seen += [(one["account_id"], one["detail"]) for one in page["entries"]]
        before = page["next_before"]
        if before is None:
            break
    mine, other = operator.account_id, theirs.account_id
    assert seen == [(other, "reason 3"), (mine, "reason 2"), (other, "reason 1"), (mine, "reason 0")]


async def test_the_log_of_one_account_or_of_the_installation(
    ctx: context.Context, operator: Operator, theirs: management.AccountClients
) -> None:
    async def actions(**query: str) -> set[tuple[str | None, str]]:
        answer = await operator.http.get(PATH, params=query)
        assert answer.status_code == 200, answer.text
        return {(one["account_id"], one["action"]) for one in answer.json()["entries"]}

    assert await actions(of="installation") == {(None, "operator.added")}
    assert await actions(account_id=theirs.account_id) == {(theirs.account_id, "account.created")}
    everything = await actions()
    assert {(None, "operator.added"), (theirs.account_id, "account.created")} <= everything
    assert await actions(subject="THEIRS", action="account") == {(theirs.account_id, "account.created")}
    unknown = await operator.http.get(PATH, params={"account_id": "acc_00000000000000ffffffffffffff"})
    assert unknown.status_code == 404
