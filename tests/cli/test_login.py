"""`postroad login` and `logout`, and which server a command uses."""

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli import cli_runner, scripted_server, server_runner
from tests.cli.server_runner import Server, home, server

__all__ = ["home", "server"]


def test_a_login_is_checked_and_stored_in_a_private_file_and_used_until_the_logout(server: Server, home: Path) -> None:
    said = server_runner.text("login", f"{server.url}/", given=f"{server.key}\n")
    assert said.startswith(f"Logged in to {server.url}, account Demo. Scopes of the key: send, read, templates, ")
    file = home / "postroad" / "login.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {"current": server.url, "keys": {server.url: server.key}}
    listed = cli_runner.run("messages")
    assert (listed.exit_code, listed.stderr) == (0, f"Server: {server.url}\n")
    assert server_runner.text("logout").startswith(f"Logged out of {server.url}. ")
    assert not file.exists()
    assert "not logged in" in cli_runner.run("logout").stderr
    assert "No server given. Run 'postroad login URL'" in cli_runner.run("messages").stderr


def test_a_key_that_may_not_know_the_account_is_stored_too_and_its_scopes_are_shown(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROAD_API_KEY", server.key_with("send"))
    found = server_runner.data("login", server.url)
    assert found == {
        "url": server.url,
        "account": None,
        "scopes": ["send"],
        "file": str(home / "postroad" / "login.json"),
    }


def test_a_wrong_key_is_not_stored_and_has_an_exit_code_of_its_own(server: Server, home: Path) -> None:
    said = server_runner.refusal(cli_runner.run("login", server.url, given="pr_live_wrong\n"), exit_code=3)
    assert "pr_live_wrong" not in said
    assert [*home.iterdir()] == []


def test_the_server_of_the_last_login_is_the_default_and_url_chooses_another(server: Server, home: Path) -> None:
    server_runner.text("login", server.url, given=server.key)
    with scripted_server.answering(b"{}") as other:
        server_runner.text("login", other.url, given="pr_live_other")
        server_runner.text("messages")
        assert other.asked[-1]["Authorization"] == "Bearer pr_live_other"
        assert f"Server: {server.url}\n" in cli_runner.run("messages", "--url", server.url).stderr
        server_runner.text("logout", other.url)
        assert "No server given" in cli_runner.run("messages").stderr
        assert [*json.loads((home / "postroad" / "login.json").read_text())["keys"]] == [server.url]


@pytest.mark.parametrize(
    "url, said",
    [
        ("mail.example.com", "must start with https://"),
        ("ftp://mail.example.com", "must start with https://"),
        ("https://user@mail.example.com", "must have no user"),
        ("https://mail.example.com/?a=1", "must have no user, query"),
        ("http://[::1", "not a valid URL"),
        ("https://a:99999", "not a valid URL"),
    ],
)
def test_a_url_that_cannot_be_one_is_refused(home: Path, url: str, said: str) -> None:
    del home
    assert said in server_runner.refusal(cli_runner.run("login", url, given="pr_live_a"), exit_code=2)


@pytest.mark.parametrize("key", ["", "pr live", "pr_live_\x1b", "pr_live_ü"])
def test_a_key_that_cannot_be_one_is_never_sent(home: Path, key: str) -> None:
    del home
    with scripted_server.answering(b"{}") as other:
        assert "API key" in server_runner.refusal(cli_runner.run("login", other.url, given=f"{key}\n"), exit_code=2)
        assert other.asked == []


def test_a_redirect_is_not_followed(home: Path) -> None:
    del home
    with (
        scripted_server.answering(b"{}") as elsewhere,
        scripted_server.answering(b"", status=302, headers={"Location": elsewhere.url}) as first,
    ):
        said = server_runner.refusal(cli_runner.run("login", first.url, given="pr_live_a"), exit_code=1)
        assert said == f"{first.url} redirects elsewhere (302); use the final URL"
        assert elsewhere.asked == []


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"[" * 100_000, b'{"a": "\xff"}'])
def test_what_is_not_the_api_is_said_to_be_none(home: Path, body: bytes) -> None:
    del home
    with scripted_server.answering(body) as other:
        said = server_runner.refusal(cli_runner.run("login", other.url, given="pr_live_a"), exit_code=1)
        assert said == f"{other.url} is not the API of a Postroad server (status 200)"


def test_a_server_that_is_not_there_has_an_exit_code_of_its_own(home: Path) -> None:
    del home
    with scripted_server.answering(b"{}") as gone:
        pass
    said = server_runner.refusal(cli_runner.run("login", gone.url, given="pr_live_a"), exit_code=4)
    assert said == f"{gone.url} cannot be reached: Connection refused"


def test_a_damaged_file_is_an_error_that_says_what_to_do(home: Path) -> None:
    (home / "postroad").mkdir()
    (home / "postroad" / "login.json").write_text("{")
    assert "is damaged; delete it" in server_runner.refusal(cli_runner.run("messages"), exit_code=1)


def test_an_error_of_a_server_cannot_control_the_terminal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
    with scripted_server.answering(b'{"error": "\\u001b[2Jgone"}', status=401) as hostile:
        said = server_runner.refusal(cli_runner.run("messages", "--url", hostile.url), exit_code=3)
        assert said == r"\x1b[2Jgone"


def test_a_server_and_an_installation_cannot_both_be_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hello = ("send", "--from", "a@example.com", "--to", "b@example.net", "--subject", "x", "--text", "x")
    both = cli_runner.run(*hello, "--url", "http://127.0.0.1:1", "--data", str(home))
    assert (both.exit_code, "--data and --url cannot be combined" in both.stderr) == (2, True)
    alone = cli_runner.run(*hello, "--account", "Shop", "--url", "http://127.0.0.1:1")
    assert (alone.exit_code, "--account needs --data or --config" in alone.stderr) == (2, True)
    monkeypatch.setenv("POSTROAD_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("POSTROAD_DATABASE__URL", "sqlite:////nowhere")
    found = cli_runner.run(*hello)
    assert (found.exit_code, "names both a server (POSTROAD_URL) and an installation" in found.stderr) == (2, True)


def test_the_file_of_another_user_is_ignored(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root with the HOME of somebody else, who could name a server and see what root sends it."""
    server_runner.text("login", server.url, given=server.key)
    file = home / "postroad" / "login.json"
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    said = cli_runner.run("messages").stderr
    assert f"Ignored {file}: it belongs to another user. Set HOME to your own.\n" in said
    assert "No server given" in said
    stored = file.read_bytes()
    assert f"{file} belongs to another user" in cli_runner.run("login", server.url, given=server.key).stderr
    assert file.read_bytes() == stored
