"""How accounts are named: by id, by a unique name, or not at all."""

from postroad import context
from tests.cli.cli_runner import Installation


def test_the_only_account_need_not_be_named(installation: Installation) -> None:
    assert installation.json("credits", "add", "--amount", "5")["account"]["name"] == "Shop"


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


def test_a_name_that_two_accounts_have_names_neither(installation: Installation) -> None:
    async def add_another(ctx: context.Context) -> None:  # as older versions could
        async with ctx.store.transaction() as tx:
            await tx.run_script(
                "INSERT INTO accounts (id, name, status, available, reserved, created_at) "
                "SELECT 'acc_ffff' || substr(id, 9), name, status, 0, 0, 1 FROM accounts"
            )

    installation.ask(add_another)
    assert installation.refusal("account", "suspend", "Shop", "--reason", "x") == (
        "more than one account is named 'Shop'; use its id"
    )


def test_names_are_compared_whatever_their_case(installation: Installation) -> None:
    assert installation.json("account", "show", "sHOP")["account"]["name"] == "Shop"
    assert installation.refusal("account", "show", "Sho%") == "account 'Sho%' does not exist"
