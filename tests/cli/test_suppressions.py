"""`postroad suppression`, on both engines."""

from tests.cli.operating import Installation


def test_an_address_is_put_on_the_list_shown_and_taken_off(installation: Installation) -> None:
    assert installation.text("suppression", "list") == "There are no suppressed addresses.\n"
    said = installation.text("suppression", "add", "Ada@Example.NET", "--reason", "asked to be left alone")
    assert said == "ada@example.net gets no mail of this account: asked to be left alone\n"
    (one,) = installation.json("suppression", "list")["suppressions"]
    assert (one["email"], one["source"], one["message_id"]) == ("ada@example.net", "operator", None)
    titles, row = installation.text("suppression", "list").splitlines()
    assert titles.split() == ["ADDRESS", "SINCE", "SOURCE", "REASON"]
    assert row.split() == ["ada@example.net", one["created_at"], "operator", "asked", "to", "be", "left", "alone"]
    assert installation.text("suppression", "remove", "ADA@example.net").startswith("ada@example.net can get mail")
    assert installation.json("suppression", "list") == {"suppressions": [], "next_after": None}


def test_the_list_comes_in_parts(installation: Installation) -> None:
    for name in ("c", "a", "b"):
        installation.text("suppression", "add", f"{name}@example.net")
    page = installation.json("suppression", "list", "--after", "a@example.net", "--limit", "1")
    assert [one["email"] for one in page["suppressions"]] == ["b@example.net"]
    assert page["next_after"] == "b@example.net"
    assert installation.text("suppression", "list", "--limit", "2").endswith("There are more: --after b@example.net\n")


def test_what_cannot_be_done_is_refused_with_a_sentence(installation: Installation) -> None:
    refused = installation.refusal("suppression", "remove", "ada@example.net")
    assert refused == "ada@example.net is not on the suppression list of the account"
    assert installation.refusal("suppression", "add", "ada@").startswith("email: 'ada@' is not an email address")
