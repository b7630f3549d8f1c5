"""`postroad operator`."""

import re

from tests.cli.cli_runner import Installation


def test_a_user_becomes_an_operator_and_is_one_no_longer(installation: Installation) -> None:
    installation.text("user", "create", "jo@example.com")
    assert installation.text("operator", "list") == "There are no operators.\n"
    added = installation.text("operator", "add", "Jo@Example.com")
    assert re.fullmatch(r"jo@example\.com of account acc_\w+ is an operator\.\n", added)
    (listed,) = installation.json("operator", "list")["operators"]
    assert (listed["email"], listed["enabled"]) == ("jo@example.com", True)
    assert "jo@example.com" in installation.text("operator", "list")
    assert installation.text("operator", "remove", "jo@example.com") == "jo@example.com is no longer an operator.\n"
    assert installation.json("operator", "list") == {"operators": []}


def test_somebody_who_is_none_is_refused_with_a_sentence(installation: Installation) -> None:
    expected = "user 'jo@example.com' does not exist; create or invite the user first"
    assert installation.refusal("operator", "add", "jo@example.com") == expected
    assert installation.refusal("operator", "remove", "jo@example.com") == "'jo@example.com' is not an operator"
