"""`postroad apikey`."""

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services.people import authentication
from tests.cli import cli_runner
from tests.cli.cli_runner import Installation


def authenticated(installation: Installation, key: str) -> callers.Caller:
    async def ask(ctx: context.Context) -> callers.Caller:
        return await authentication.authenticate(ctx, f"Bearer {key}", client_address="127.0.0.1")

    return installation.ask(ask)


def test_a_new_key_may_send_and_nothing_else(installation: Installation) -> None:
    key = installation.json("apikey", "create")["api_key"]
    assert key["key"].startswith("pr_live_")
    assert key["scopes"] == ["send"]
    assert authenticated(installation, key["key"]).permissions == {callers.Permission.SEND}


def test_a_key_may_be_allowed_to_read(installation: Installation) -> None:
    key = installation.json("apikey", "create", "--scope", "send", "--scope", "read")["api_key"]
    permissions = authenticated(installation, key["key"]).permissions
    assert permissions == {callers.Permission.SEND, callers.Permission.READ}


def test_a_key_may_be_allowed_everything_or_anything_but_sending(installation: Installation) -> None:
    for scope in ("*", "statistics"):
        key = installation.json("apikey", "create", "--scope", scope)["api_key"]
        assert key["scopes"] == [scope]


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


def test_limits_that_make_no_sense_are_refused(installation: Installation) -> None:
    for option, value, sentence in (
        ("--network", "192.0.2.1/24", "networks[0]: must be a network"),
        ("--expires", "2020-01-01", "expires_at: must be in the future"),
        ("--credit-budget", "0", "credit_budget: must be from 1"),
    ):
        assert installation.refusal("apikey", "create", option, value).startswith(sentence)
    soon = cli_runner.usage_error(installation.run("apikey", "create", "--expires", "soon"))
    assert soon.startswith("--expires: not an RFC 3339 time")
    assert installation.json("apikey", "list")["api_keys"] == []


def test_a_key_belongs_to_the_oldest_credential_or_to_the_one_that_is_named(installation: Installation) -> None:
    first = installation.json("credential", "create")["credential"]["id"]
    second = installation.json("credential", "create")["credential"]["id"]
    assert installation.json("apikey", "create")["api_key"]["credential_id"] == first
    named = installation.json("apikey", "create", "--credential", second)["api_key"]
    assert named["credential_id"] == second


def test_an_account_without_a_live_credential_gets_one_for_its_key(installation: Installation) -> None:
    first = installation.json("apikey", "create")["api_key"]["credential_id"]
    installation.text("credential", "revoke", first)
    second = installation.json("apikey", "create")["api_key"]["credential_id"]
    assert [one["id"] for one in installation.json("credential", "list")["credentials"]] == [first, second]


def test_a_credential_of_another_account_is_refused(installation: Installation) -> None:
    credential = installation.json("credential", "create")["credential"]["id"]
    installation.text("account", "create", "--name", "Other")
    sentence = installation.refusal("apikey", "create", "--account", "Other", "--credential", credential)
    assert sentence.startswith("credential_id: no such active SMTP credential")


def test_a_list_shows_a_hint_and_never_the_key(installation: Installation) -> None:
    key = installation.json("apikey", "create", "--name", "shop")["api_key"]
    for printed in (installation.text("apikey", "list"), installation.text("apikey", "list", "--json")):
        assert key["hint"] in printed
        assert key["key"] not in printed


def test_a_revoked_key_stops(installation: Installation) -> None:
    key = installation.json("apikey", "create")["api_key"]
    installation.text("apikey", "revoke", key["id"])
    with pytest.raises(errors.Unauthorized):
        authenticated(installation, key["key"])
    assert "no such active API key" in installation.refusal("apikey", "revoke", key["id"])


def test_people_see_the_key_on_a_line_of_its_own(installation: Installation) -> None:
    lines = installation.text("apikey", "create").splitlines()
    assert authenticated(installation, lines[0]).scheme is callers.Scheme.API_KEY
    assert lines[1].startswith("Shown only once")


def test_a_test_key_sends_to_the_simulator(installation: Installation) -> None:
    key = installation.json("apikey", "create", "--test")["api_key"]
    assert key["key"].startswith("pr_test_")
    assert key["mode"] == "test"
    assert authenticated(installation, key["key"]).is_test
    live = installation.json("apikey", "create")["api_key"]
    assert live["mode"] == "live"
    assert not authenticated(installation, live["key"]).is_test
