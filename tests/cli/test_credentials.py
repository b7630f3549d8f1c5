"""`postroad credential`."""

import base64

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services.people import authentication
from tests.cli.cli_runner import Installation


def authenticated(installation: Installation, username: str, password: str) -> callers.Caller:
    field = "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()

    async def ask(ctx: context.Context) -> callers.Caller:
        return await authentication.authenticate(ctx, field, client_address="127.0.0.1")

    return installation.ask(ask)


def test_a_new_credential_works_with_the_password_that_is_shown(installation: Installation) -> None:
    credential = installation.json("credential", "create", "--name", "shop server")["credential"]
    who = authenticated(installation, credential["username"], credential["password"])
    assert (who.credential_id, who.account_id) == (credential["id"], credential["account_id"])


def test_people_see_the_password_and_that_it_is_shown_once(installation: Installation) -> None:
    lines = installation.text("credential", "create").splitlines()
    (listed,) = installation.json("credential", "list")["credentials"]
    username, password = lines[0].split()[-1], lines[1].split()[-1]
    assert listed["username"] == username
    assert authenticated(installation, username, password).credential_id == listed["id"]
    assert lines[2] == f"Shown only once; store it safely. Credential id: {listed['id']}"


def test_a_list_never_shows_a_password_or_its_hash(installation: Installation) -> None:
    credential = installation.json("credential", "create")["credential"]
    for printed in (installation.text("credential", "list"), installation.text("credential", "list", "--json")):
        assert credential["username"] in printed
        assert credential["password"] not in printed
        assert "argon2" not in printed


def test_a_revoked_credential_stops_and_stays_in_the_list(installation: Installation) -> None:
    credential = installation.json("credential", "create")["credential"]
    assert installation.json("credential", "revoke", credential["id"]) == {"revoked": credential["id"]}
    with pytest.raises(errors.Unauthorized):
        authenticated(installation, credential["username"], credential["password"])
    (listed,) = installation.json("credential", "list")["credentials"]
    assert listed["revoked_at"] is not None


def test_what_is_not_a_live_credential_of_the_account_cannot_be_revoked(installation: Installation) -> None:
    credential = installation.json("credential", "create")["credential"]
    installation.text("account", "create", "--name", "Other")
    for words in (
        ("cred_" + "0" * 28, "--account", "Shop"),
        ("x", "--account", "Shop"),
        (credential["id"], "--account", "Other"),
    ):
        assert "no such active SMTP credential" in installation.refusal("credential", "revoke", *words)
