"""`postroad account`, `credits` and `audit-log`, and how accounts are named."""

from postroad import context
from postroad.model.units import identifiers
from postroad.services.accounts import credits as services_credits
from tests import accepted_mail
from tests.cli.cli_runner import Installation


def test_a_new_account_is_active_and_has_no_credits(empty: Installation) -> None:
    account = empty.json("account", "create", "--name", "Shop")["account"]
    assert identifiers.is_identifier(account["id"], identifiers.ACCOUNT)
    assert (account["name"], account["state"], account["credits"]) == (
        "Shop",
        "active",
        {"available": 0, "reserved": 0},
    )


def test_accounts_are_listed_oldest_first_and_in_pages(empty: Installation) -> None:
    ids = [empty.json("account", "create", "--name", name)["account"]["id"] for name in ("A", "B", "C")]
    assert [account["id"] for account in empty.json("account", "list")["accounts"]] == ids
    page = empty.json("account", "list", "--after", ids[0], "--limit", "1")
    assert [account["name"] for account in page["accounts"]] == ["B"]
    assert page["next_after"] == ids[1]
    assert empty.text("account", "list", "--limit", "2").endswith(f"\nMore rows: --after {ids[1]}\n")
    assert empty.json("account", "list", "--limit", "3")["next_after"] is None


def test_a_list_is_a_table_for_people_and_an_empty_one_says_so(empty: Installation) -> None:
    assert empty.text("account", "list") == "There are no accounts.\n"
    account = empty.json("account", "create", "--name", "Shop")["account"]
    title, row = empty.text("account", "list").splitlines()
    assert title.split() == ["ID", "NAME", "STATUS", "AVAILABLE", "RESERVED"]
    assert row.split() == [account["id"], "Shop", "active", "0", "0"]


def test_an_account_is_shown_by_its_id_and_by_its_name(installation: Installation) -> None:
    by_name = installation.json("account", "show", "Shop")
    assert installation.json("account", "show", by_name["account"]["id"]) == by_name
    assert f"id:      {by_name['account']['id']}\n" in installation.text("account", "show", "Shop")


def test_a_suspended_account_shows_the_reason_until_it_is_resumed(installation: Installation) -> None:
    suspended = installation.json("account", "suspend", "Shop", "--reason", "unpaid bill")["account"]
    assert (suspended["state"], suspended["suspended_reason"]) == ("suspended", "unpaid bill")
    assert "status:  suspended: unpaid bill" in installation.text("account", "show", "Shop")
    resumed = installation.json("account", "resume", "Shop")["account"]
    assert (resumed["state"], resumed["suspended_reason"]) == ("active", None)


def test_an_account_is_shown_with_how_much_of_its_mail_bounces(installation: Installation) -> None:
    shown = installation.json("account", "show", "Shop")["account"]
    assert (shown["sending"]["state"], shown["sending"]["recipients"], shown["suspended_by"]) == ("ok", 0, None)
    counts = "sending: 0 recipients in 7 days, 0 invalid addresses (0.00%), 0 complaints (0.00%): ok\n"
    assert counts in installation.text("account", "show", "Shop")
    assert installation.json("account", "suspend", "Shop", "--reason", "x")["account"]["suspended_by"] == "operator"


def test_an_account_is_shown_with_its_storage(installation: Installation) -> None:
    account_id = installation.json("account", "show", "Shop")["account"]["id"]

    async def send(ctx: context.Context) -> None:
        await accepted_mail.allow_sending(ctx, account_id)
        await accepted_mail.accept(ctx, account_id, text="x" * 2_000_000)
        await accepted_mail.accept(ctx, account_id, text="x" * 1_000_000, is_test=True)

    installation.ask(send)
    storage = installation.json("account", "show", "Shop")["storage"]
    assert 2_000_000 < storage["live_bytes"] < 2_200_000
    assert 1_000_000 < storage["test_bytes"] < 1_100_000
    shown = installation.text("account", "show", "Shop")
    assert "storage: 2.0 of 10,240 MiB, test mail 1.0 of 256 MiB\n" in shown


def test_an_account_is_renamed_closed_reopened_and_removed(installation: Installation) -> None:
    account_id = installation.json("account", "show", "Shop")["account"]["id"]
    assert installation.text("account", "rename", "shop", "Store") == f"Account 'Shop' ({account_id}) is now 'Store'.\n"
    assert "is not closed; close it first" in installation.refusal("account", "remove", "Store", "--yes")
    assert installation.json("account", "close", "Store")["account"]["state"] == "closed"
    assert "status:  closed\n" in installation.text("account", "show", "Store")
    assert installation.text("account", "reopen", "Store") == f"Account 'Store' ({account_id}) is reopened.\n"
    installation.text("account", "close", "Store")
    refusal = installation.refusal("account", "remove", "Store")
    assert refusal == (f"all data of 'Store' ({account_id}) would be deleted; add --yes to confirm")
    assert installation.json("account", "remove", "Store", "--yes") == {"removed": account_id}
    assert installation.json("account", "list")["accounts"] == []
    assert f"removed the account Store ({account_id})" in installation.text("audit-log", "--installation")


def test_an_account_can_be_named_by_id_and_by_name(installation: Installation) -> None:
    installation.text("account", "create", "--name", "Other")
    account_id = installation.json("account", "show", "Other")["account"]["id"]
    installation.text("credits", "add", "--amount", "5", "--account", "Other")
    installation.text("credits", "add", "--amount", "5", "--account", account_id)
    assert installation.json("account", "show", "Other")["account"]["credits"]["available"] == 10
    assert installation.json("account", "show", "Shop")["account"]["credits"]["available"] == 0


def test_without_an_account_the_operator_is_told_how_to_make_one(empty: Installation) -> None:
    assert empty.refusal("credits", "add", "--amount", "5") == (
        "there are no accounts; create one with 'postroad account create'"
    )


def test_among_several_accounts_one_has_to_be_named(installation: Installation) -> None:
    installation.text("account", "create", "--name", "Other")
    assert (
        installation.refusal("domain", "list")
        == "there is more than one account; choose one with --account (see 'postroad account list')"
    )


def test_names_are_compared_whatever_their_case(installation: Installation) -> None:
    assert installation.json("account", "show", "sHOP")["account"]["name"] == "Shop"
    assert installation.refusal("account", "show", "Sho%") == "account 'Sho%' does not exist"


def test_credits_are_added_to_the_balance_and_to_the_ledger(installation: Installation) -> None:
    account = installation.json("credits", "add", "--amount", "500", "--note", "invoice 7")["account"]
    assert account["credits"] == {"available": 500, "reserved": 0}
    (entry,) = installation.ask(lambda ctx: services_credits.ledger(ctx, account["id"], None, 10))
    assert (entry.kind, entry.available, entry.note) == ("grant", 500, "invoice 7")


def test_an_account_can_be_exempt_from_credits(installation: Installation) -> None:
    assert installation.text("credits", "unlimited", "on").endswith(") has unlimited credits.\n")
    assert "0 available, 0 reserved; unlimited\n" in installation.text("account", "show", "Shop")
    assert installation.json("credits", "unlimited", "off")["account"]["credits_unlimited"] is False
    assert "0 available, 0 reserved\n" in installation.text("account", "show", "Shop")


def test_an_impossible_amount_is_refused_and_changes_nothing(installation: Installation) -> None:
    for amount in ("0", "-5", str(2**53)):
        assert installation.refusal("credits", "add", "--amount", amount).startswith("amount: ")
    assert installation.refusal("credits", "add", "--amount", str(2**70)).endswith("does not fit into 64 bits")
    assert installation.json("account", "show", "Shop")["account"]["credits"]["available"] == 0


def test_what_an_operator_did_is_shown_newest_first(installation: Installation) -> None:
    installation.text("user", "create", "jo@example.com")
    installation.text("credits", "add", "--amount", "50", "--note", "a gift")
    lines = installation.text("audit-log").splitlines()
    assert lines[0].split() == ["TIME", "ACTOR", "CLIENT", "ACTION"]
    assert [line.split(maxsplit=3)[1:] for line in lines[1:]] == [
        ["operator", "-", "added 50 credits (a gift)"],
        ["operator", "-", "created the user jo@example.com (as owner)"],
        ["operator", "-", "created the account Shop"],
    ]


def test_only_so_many_entries_of_the_named_account_are_shown(installation: Installation) -> None:
    installation.text("account", "create", "--name", "Other")
    installation.text("credits", "add", "--account", "Other", "--amount", "1")
    (entry,) = installation.json("audit-log", "--account", "Other", "--limit", "1")["entries"]
    assert entry["action"] == "credits.added"
    assert "more than one account" in installation.refusal("audit-log")
    for limit in ("0", "1001", "x"):
        assert installation.run("audit-log", "--account", "Shop", "--limit", limit).exit_code == 2
