"""`postroad suppression`."""

from pathlib import Path

import pytest

from postroad.services.suppressions import suppression_csv
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import suppressions as stored
from tests.cli.cli_runner import Installation


def test_an_address_is_put_on_the_list_shown_and_taken_off(installation: Installation) -> None:
    assert installation.text("suppression", "list") == "The suppression list is empty.\n"
    said = installation.text("suppression", "add", "Ada@Example.NET", "--reason", "asked to be left alone")
    assert said == "ada@example.net is suppressed: asked to be left alone\n"
    (one,) = installation.json("suppression", "list")["suppressions"]
    assert (one["email"], one["source"], one["message_id"]) == ("ada@example.net", "operator", None)
    titles, row = installation.text("suppression", "list").splitlines()
    assert titles.split() == ["ADDRESS", "SINCE", "SOURCE", "REASON"]
    assert row.split() == ["ada@example.net", one["created_at"], "operator", "asked", "to", "be", "left", "alone"]
    assert installation.text("suppression", "remove", "ADA@example.net").startswith(
        "ada@example.net is no longer suppressed"
    )
    assert installation.json("suppression", "list") == {"suppressions": [], "next_after": None}


def test_an_operator_takes_off_who_has_complained(installation: Installation) -> None:
    account_id = installation.json("account", "list")["accounts"][0]["id"]
    source = stored.Source.COMPLAINT
    installation.ask(lambda ctx: suppressions.add(ctx, account_id, "ada@example.net", reason="abuse", source=source))
    assert installation.text("suppression", "remove", "ada@example.net").startswith(
        "ada@example.net is no longer suppressed"
    )


def test_the_list_comes_in_parts(installation: Installation) -> None:
    for name in ("c", "a", "b"):
        installation.text("suppression", "add", f"{name}@example.net")
    page = installation.json("suppression", "list", "--after", "a@example.net", "--limit", "1")
    assert [one["email"] for one in page["suppressions"]] == ["b@example.net"]
    assert page["next_after"] == "b@example.net"
    assert installation.text("suppression", "list", "--limit", "2").endswith("More rows: --after b@example.net\n")


def test_the_list_can_be_of_one_source(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("b@example.net\n")
    installation.text("suppression", "add", "a@example.net")
    installation.text("suppression", "import", str(tmp_path / "list.csv"))
    found = installation.json("suppression", "list", "--source", "import")["suppressions"]
    assert [(one["email"], one["source"], one["smtp_code"]) for one in found] == [("b@example.net", "import", None)]


def test_a_file_goes_out_and_comes_in_again(installation: Installation, tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    given = 'email,reason\n=x@example.net,"a, b"\nada@example.net,\n'
    said = installation.text("suppression", "import", "-", given=given)
    assert said == "2 added, 0 already on the list.\n"
    assert installation.json("suppression", "import", "-", given=given) == {"added": 0, "unchanged": 2}
    printed = installation.text("suppression", "export")
    assert printed.splitlines()[1].startswith('\'=x@example.net,import,"a, b",,,2')
    assert installation.text("suppression", "export", str(file)) == f"Written: {file}\n"
    assert installation.json("suppression", "export", str(file)) == {"file": str(file)}
    assert file.read_text() == printed.replace("\r\n", "\n")
    assert [one.name for one in tmp_path.iterdir() if one.suffix == ".part"] == []
    for email in ("=x@example.net", "ada@example.net"):
        installation.text("suppression", "remove", email)
    assert installation.json("suppression", "import", str(file)) == {"added": 2, "unchanged": 0}


def test_operators_have_wider_bounds_for_a_file(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    given = "ada@example.net\nbob@example.net\n"
    for bounds in (suppression_csv.FileLimits(1, len(given)), suppression_csv.FileLimits(2, len(given) - 1)):
        with monkeypatch.context() as patched:
            patched.setattr(suppression_csv, "OPERATOR_LIMITS", bounds)
            assert "split the file" in installation.refusal("suppression", "import", "-", given=given)
    assert installation.json("suppression", "import", "-", given=given) == {"added": 2, "unchanged": 0}
    assert suppression_csv.OPERATOR_LIMITS.max_rows > suppression_csv.CALLER_LIMITS.max_rows
    assert suppression_csv.OPERATOR_LIMITS.max_bytes > suppression_csv.CALLER_LIMITS.max_bytes


def test_a_file_that_cannot_be_read_or_written_is_reported(installation: Installation, tmp_path: Path) -> None:
    assert installation.refusal("suppression", "import", "-", given="ada@example.net\nx\n").startswith("line 2: 'x' is")
    assert installation.json("suppression", "list")["suppressions"] == []
    missing = tmp_path / "nowhere" / "list.csv"
    assert str(missing) in installation.refusal("suppression", "export", str(missing))
    wrong = installation.run("suppression", "export", "--json")
    assert (wrong.exit_code, "--json requires a FILE" in wrong.stderr) == (2, True)


def test_what_cannot_be_done_is_refused_with_a_sentence(installation: Installation) -> None:
    refused = installation.refusal("suppression", "remove", "ada@example.net")
    assert refused == "the address is not on the suppression list of this account"
    assert installation.refusal("suppression", "add", "ada@").startswith("email: 'ada@' is not an email address")
