"""`postroad journal`, on both engines."""

from tests.cli.cli_runner import Installation


def test_what_an_operator_did_is_shown_newest_first(installation: Installation) -> None:
    installation.text("user", "create", "jo@example.com")
    installation.text("credits", "add", "--amount", "50", "--note", "a gift")
    lines = installation.text("journal").splitlines()
    assert lines[0].split() == ["AT", "WHO", "WHAT"]
    assert [line.split(maxsplit=2)[1:] for line in lines[1:]] == [
        ["operator", "added 50 credits (a gift)"],
        ["operator", "made a login for jo@example.com (as owner)"],
        ["operator", "made the account Shop"],
    ]


def test_programs_get_the_members_of_the_api(installation: Installation) -> None:
    (entry,) = installation.json("journal")["entries"]
    assert entry.pop("id").startswith("jrn_")
    assert entry.pop("account_id").startswith("acc_")
    assert entry.pop("at").endswith("Z")
    assert entry == {
        "actor": {"kind": "operator", "id": None, "name": "operator"},
        "action": "account.created",
        "subject": "Shop",
        "detail": "",
        "text": "made the account Shop",
        "request_id": None,
        "client_address": None,
    }


def test_only_so_many_entries_of_the_named_account_are_shown(installation: Installation) -> None:
    installation.text("account", "create", "--name", "Other")
    installation.text("credits", "add", "--account", "Other", "--amount", "1")
    (entry,) = installation.json("journal", "--account", "Other", "--limit", "1")["entries"]
    assert entry["action"] == "credits.added"
    assert "several accounts" in installation.refusal("journal")
    for limit in ("0", "1001", "x"):
        assert installation.run("journal", "--account", "Shop", "--limit", limit).exit_code == 2
