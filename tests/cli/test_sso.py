"""`postroad sso`."""

from postroad import context
from postroad.services.accounts import account_registry as accounts_registry
from postroad.services.domains import domain_registry
from postroad.services.people import sso_connections
from tests.cli.cli_runner import Installation


async def connect(ctx: context.Context) -> str:
    """An account that nobody can log in to without its provider."""
    account = await accounts_registry.create(ctx, "Corner")
    await domain_registry.add(ctx, account.id, "corp.example", verified=True)
    draft = sso_connections.Draft(
        issuer="https://login.corp.example",
        client_id="postroad",
        client_secret="hush",
        domains=["corp.example"],
        groups={},
    )
    await sso_connections.save(ctx, account.id, draft)
    return account.id


def test_the_single_sign_on_of_an_account_is_shown_without_its_secret_and_removed(installation: Installation) -> None:
    account_id = installation.ask(connect)
    named = ("--account", account_id)
    expected = "https://login.corp.example for corp.example; passwords are on.\n"
    assert installation.text("sso", "show", *named) == expected
    shown = installation.json("sso", "show", *named)["sso"]
    assert (shown["issuer"], shown["domains"]) == ("https://login.corp.example", ["corp.example"])
    assert shown["redirect_uri"].endswith(f"/sso/{account_id}/callback")
    assert "hush" not in str(shown)
    assert installation.text("sso", "remove", *named) == "Single sign-on of Corner is removed.\n"
    for verb in ("show", "remove"):
        assert installation.refusal("sso", verb, *named) == "this account has no single sign-on"
