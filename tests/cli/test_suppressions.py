"""`postroad suppression`, on the host and with a real server; and `domain check` with one."""

from pathlib import Path

import pytest

from postroad.cli.framework import server_command
from postroad.cli.server import suppressions
from postroad.services.suppressions import suppression_csv
from postroad.storage.mail import suppressions as stored
from tests.cli import cli_runner, server_runner
from tests.cli.cli_runner import Installation
from tests.cli.server_runner import Server, home, remote, server

__all__ = ["home", "remote", "server"]


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


def test_addresses_are_added_listed_page_by_page_and_removed(remote: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_command, "PAGE", 2)
    assert server_runner.text("suppression", "list") == "The suppression list is empty.\n"
    for name in "abcde":
        said = server_runner.text("suppression", "add", f"{name}@Example.net", "--reason", "asked for it")
        assert said == f"{name}@example.net is suppressed: asked for it\n"
    listed = server_runner.data("suppression", "list", "--limit", "3")
    assert [one["email"] for one in listed["suppressions"]] == ["a@example.net", "b@example.net", "c@example.net"]
    assert listed["next_after"] == "c@example.net"
    rest = server_runner.text("suppression", "list", "--after", "c@example.net", "--source", "account")
    assert [line.split()[0] for line in rest.splitlines()] == ["ADDRESS", "d@example.net", "e@example.net"]
    said = server_runner.text("suppression", "remove", "a@example.net")
    assert said == "a@example.net is no longer suppressed.\n"
    # The same command on the installation sees the same list.
    local = cli_runner.run("suppression", "list", "--data", str(remote.data), "--json", "--url", remote.url)
    assert "--data and --url cannot be combined" in local.stderr
    monkeypatch.delenv("POSTROAD_URL")
    assert "b@example.net" in server_runner.text("suppression", "list", "--data", str(remote.data))


def test_an_address_that_is_not_there_or_none_is_an_error(remote: Server) -> None:
    del remote
    gone = cli_runner.run("suppression", "remove", "nobody@example.net")
    assert "not" in server_runner.refusal(gone, exit_code=1)
    none = cli_runner.run("suppression", "add", "nobody")
    assert server_runner.refusal(none, exit_code=1).startswith("email: ")


def test_the_sources_are_those_of_the_store() -> None:
    assert tuple(stored.Source) == suppressions.SOURCES


def test_a_domain_is_checked_and_the_exit_code_says_whether_it_is_complete(remote: Server) -> None:
    del remote
    result = cli_runner.run("domain", "check", "Example.com.")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("example.com (dom_")
    assert lines[0].endswith("): verified")
    assert lines[3].startswith("DKIM: ")
    said = server_runner.refusal(cli_runner.run("domain", "check", "other.example"), exit_code=1)
    assert said == "other.example is not registered by this account"
