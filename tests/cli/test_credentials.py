"""`postroad credential` and `apikey`."""

import base64

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services.people import authentication
from tests.cli import cli_runner
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


def test_a_revoked_credential_stops_and_stays_in_the_list(installation: Installation) -> None:
    credential = installation.json("credential", "create")["credential"]
    assert installation.json("credential", "revoke", credential["id"]) == {"revoked": credential["id"]}
    with pytest.raises(errors.Unauthorized):
        authenticated(installation, credential["username"], credential["password"])
    (listed,) = installation.json("credential", "list")["credentials"]
    assert listed["revoked_at"] is not None


def by_key(installation: Installation, key: str) -> callers.Caller:
    async def ask(ctx: context.Context) -> callers.Caller:
        return await authentication.authenticate(ctx, f"Bearer {key}", client_address="127.0.0.1")

    return installation.ask(ask)


def test_a_new_key_may_send_and_nothing_else(installation: Installation) -> None:
    key = installation.json("apikey", "create")["api_key"]
    assert key["key"].startswith("pr_live_")
    assert key["scopes"] == ["send"]
    assert by_key(installation, key["key"]).permissions == {callers.Permission.SEND}


def test_a_key_has_the_limits_that_were_given(installation: Installation) -> None:
    limits = (
        *("--domain", "Example.com", "--domain", "b.example", "--network", "127.0.0.0/8", "--template", "welcome"),
        *("--recipients-per-day", "10", "--credit-budget", "20", "--expires", "2999-12-31"),
    )
    key = installation.json("apikey", "create", *limits)["api_key"]
    expected = {
        "domains": ["example.com", "b.example"],
        "networks": ["127.0.0.0/8"],
        "templates": ["welcome"],
        "recipients_per_day": 10,
        "recipients_today": 0,
        "credit_budget": 20,
        "credits_used": 0,
        "expires_at": "2999-12-31T00:00:00.000Z",
    }
    assert {name: key[name] for name in expected} == expected
    (listed,) = installation.json("apikey", "list")["api_keys"]
    assert {name: listed[name] for name in expected} == expected
    assert "2999-12-31T00:00:00.000Z" in installation.text("apikey", "list")
    soon = cli_runner.usage_error(installation.run("apikey", "create", "--expires", "soon"))
    assert soon == "--expires: must be a date such as 2026-12-31, or a time such as 2026-12-31T12:00:00Z"


def test_a_key_belongs_to_the_oldest_credential_or_to_the_one_that_is_named(installation: Installation) -> None:
    first = installation.json("credential", "create")["credential"]["id"]
    second = installation.json("credential", "create")["credential"]["id"]
    assert installation.json("apikey", "create")["api_key"]["credential_id"] == first
    named = installation.json("apikey", "create", "--credential", second)["api_key"]
    assert named["credential_id"] == second


def test_a_revoked_key_stops(installation: Installation) -> None:
    key = installation.json("apikey", "create")["api_key"]
    installation.text("apikey", "revoke", key["id"])
    with pytest.raises(errors.Unauthorized):
        by_key(installation, key["key"])
    assert "no such active API key" in installation.refusal("apikey", "revoke", key["id"])


def test_people_see_the_key_on_a_line_of_its_own(installation: Installation) -> None:
    lines = installation.text("apikey", "create").splitlines()
    assert by_key(installation, lines[0]).scheme is callers.Scheme.API_KEY
    assert lines[1].startswith("Shown only once")


def test_a_test_key_sends_to_the_simulator(installation: Installation) -> None:
    key = installation.json("apikey", "create", "--test")["api_key"]
    assert key["key"].startswith("pr_test_")
    assert key["mode"] == "test"
    assert by_key(installation, key["key"]).is_test
    live = installation.json("apikey", "create")["api_key"]
    assert live["mode"] == "live"
    assert not by_key(installation, live["key"]).is_test
