"""`postroad account`, on both engines."""

import pytest

from postroad import context
from postroad.model.units import identifiers
from tests import accepted_mail
from tests.cli.both_engines import empty
from tests.cli.cli_runner import Installation

__all__ = ["empty"]


def test_a_new_account_is_active_and_has_no_credits(empty: Installation) -> None:
    account = empty.json("account", "create", "--name", "Shop")["account"]
    assert identifiers.is_identifier(account["id"], identifiers.ACCOUNT)
    assert (account["name"], account["state"], account["credits"]) == (
        "Shop",
        "active",
        {"available": 0, "reserved": 0},
    )


def test_the_id_of_a_new_account_is_printed(empty: Installation) -> None:
    printed = empty.text("account", "create", "--name", "Shop")
    (account,) = empty.json("account", "list")["accounts"]
    assert printed == f"Account 'Shop' created: {account['id']}\n"


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


@pytest.mark.parametrize("action", [("show",), ("suspend", "--reason", "x"), ("resume",)], ids=lambda words: words[0])
def test_an_unknown_account_is_refused_with_a_sentence(installation: Installation, action: tuple[str, ...]) -> None:
    for name in ("Nobody", "acc_" + "0" * 28, "acc_x", ""):
        assert "does not exist" in installation.refusal("account", *action, name)


def test_a_name_that_could_deceive_is_refused(empty: Installation) -> None:
    for name in ("", "x" * 101, "two\nlines", "\u202eabc"):
        assert empty.refusal("account", "create", "--name", name).startswith("name: ")
    assert empty.json("account", "list")["accounts"] == []


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
