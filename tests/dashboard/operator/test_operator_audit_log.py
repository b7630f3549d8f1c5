"""The console's audit log: entries of all accounts and of the installation, and which operator it was."""

from postroad import context
from postroad.services.accounts import account_registry
from postroad.services.domains import domain_registry as domains
from postroad.storage.people import accounts
from tests.dashboard.browser_client import Browser

PATH = "/operator/audit-log"


async def test_entries_of_all_accounts_name_the_account_and_the_operator(
    ctx: context.Context, operator: Browser, theirs: accounts.Account
) -> None:
    await domains.add(ctx, theirs.id, "theirs.example", verified=True)
    await operator.post(f"/operator/accounts/{theirs.id}/suspend", {"reason": "spam"})
    page = (await operator.get(PATH)).text
    assert "added the domain theirs.example" in page
    assert f'<a href="/operator/accounts/{theirs.id}">Theirs</a>' in page
    assert '<strong>operator</strong> <span class="muted">(operator@mine.example)</span> suspended the account' in page
    assert '<span class="muted">installation</span>' in page
    # What somebody did in their own account is told as there.
    await operator.post("/profile/time-zone", {"time_zone": "Europe/Berlin"})
    assert "<strong>operator@mine.example</strong> changed the time zone" in (await operator.get(PATH)).text


async def test_filters_are_those_of_the_accounts_log_and_the_account(
    ctx: context.Context, operator: Browser, mine: accounts.Account, theirs: accounts.Account
) -> None:
    await domains.add(ctx, theirs.id, "theirs.example", verified=True)
    await account_registry.rename(ctx, mine.id, "Ours")
    assert "renamed" not in (await operator.get(PATH, action="domain")).text.partition("<tbody>")[2]
    assert "theirs.example" in (await operator.get(PATH, subject="THEIRS.example")).text.partition("<tbody>")[2]
    of_theirs = (await operator.get(PATH, account=theirs.id)).text
    assert "renamed the account" not in of_theirs
    assert "Who changed what in the account Theirs" in of_theirs
    of_installation = (await operator.get(PATH, of="installation")).text
    assert "made operator@mine.example an operator" in of_installation
    assert "theirs.example" not in of_installation.partition("<tbody>")[2]
    assert "No entries match." in (await operator.get(PATH, actor="nobody")).text
    assert (await operator.get(PATH, account="acc_x")).status_code == 404
