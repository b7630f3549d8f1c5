"""`postroad credits`."""

from postroad.services.accounts import credits as services_credits
from tests.cli.cli_runner import Installation


def test_credits_are_added_to_the_balance_and_to_the_ledger(installation: Installation) -> None:
    account = installation.json("credits", "add", "--amount", "500", "--note", "invoice 7")["account"]
    assert account["credits"] == {"available": 500, "reserved": 0}
    (entry,) = installation.ask(lambda ctx: services_credits.ledger(ctx, account["id"], None, 10))
    assert (entry.kind, entry.available, entry.note) == ("grant", 500, "invoice 7")


def test_the_new_balance_is_printed(installation: Installation) -> None:
    installation.text("credits", "add", "--amount", "500")
    assert installation.text("credits", "add", "--amount", "11").endswith("; 511 available.\n")


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


def test_an_amount_that_is_no_number_is_a_wrong_use(installation: Installation) -> None:
    assert installation.run("credits", "add", "--amount", "many").exit_code == 2
