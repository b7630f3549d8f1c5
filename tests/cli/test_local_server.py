"""Commands of a server on the host of the service: without a key or a login, with the file of `postroad init`."""

import contextlib
import json
from pathlib import Path

import pytest

from postroad import config
from postroad.cli.framework import local_server
from postroad.cli.framework import server_command as cli_installation
from postroad.network.http import api_client
from tests.cli import cli_runner, scripted_server, server_runner
from tests.cli.cli_runner import Installation
from tests.cli.server_runner import home

__all__ = ["home"]

DOMAIN = "shop.example"


@pytest.fixture
def host(home: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """The installation of the host, with one account, "Shop", that can send."""
    made = Installation.at(home, url=f"sqlite:///{home}/postroad.db")
    monkeypatch.setattr(cli_installation, "CONFIG_FILE", made.file)
    for words in (
        ("account", "create", "--name", "Shop"),
        ("credits", "add", "--amount", "10"),
        ("domain", "add", DOMAIN),
        ("domain", "verify", DOMAIN),
    ):
        result = cli_runner.run(*words)
        assert result.exit_code == 0, result.output
    return made


def test_first_contact_needs_no_key(host: Installation) -> None:
    words = ("--from", f"a@{DOMAIN}", "--to", "b@example.net", "--subject", "First", "--text", "x")
    sent = server_runner.data("send", *words)["message"]["id"]
    listed = cli_runner.run("messages")
    assert (listed.exit_code, listed.stderr) == (0, "Server: http://127.0.0.1:8025, on this host\n")
    assert sent in listed.stdout
    assert "Subject: First\n" in server_runner.text("show", sent)
    state = json.loads(server_runner.text("top", "--once", "--json", "--config", str(host.file)))
    assert state["queue"]["recipients"] == 1
    assert [one["domain"] for one in state["domains"]] == ["example.net"]


def test_a_change_is_in_the_audit_log_as_one_of_an_operator(host: Installation, tmp_path: Path) -> None:
    del host
    template = tmp_path / "templates" / "welcome"
    template.mkdir(parents=True)
    (template / "subject.txt").write_text("Hello\n")
    (template / "body.txt").write_text("Hello\n")
    server_runner.text("template", "push", str(template.parent), "--yes")
    newest = server_runner.data("audit-log")["entries"][0]
    assert (newest["action"], newest["actor"]["kind"]) == ("template.saved", "operator")


def test_several_accounts_have_to_be_told_apart_except_for_top(host: Installation) -> None:
    del host
    server_runner.text("account", "create", "--name", "Other")
    assert "choose one with --account" in cli_runner.sentence(cli_runner.run("messages"))
    assert server_runner.text("messages", "--account", "Other") == "No messages match.\n"
    assert "\n  ready 0, waiting 0" in server_runner.text("top", "--once")


def test_without_an_account_only_requests_of_the_operator_work(host: Installation) -> None:
    settings = config.load(host.file, environment={})
    with contextlib.closing(local_server.LocalServer(settings, account=None, needs_account=False)) as server:
        assert server.get("/v1/operator/accounts")["accounts"]
        with pytest.raises(api_client.ServerError) as refused:
            server.call("POST", "/v1/suppressions", {"email": "a@example.net"})
    assert refused.value.status in {401, 403}


def test_a_login_and_an_option_come_before_the_file_of_init(
    host: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    del host
    with scripted_server.answering(b'{"messages": []}', status=200) as other:
        monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
        assert cli_runner.run("messages", "--url", other.url).stderr == f"Server: {other.url}\n"
        assert cli_runner.run("login", other.url).exit_code == 0
        assert cli_runner.run("messages").stderr == f"Server: {other.url}\n"
        said = cli_runner.usage_error(cli_runner.run("messages", "--account", "Shop"))
        assert said == "--account needs --data or --config; the API key decides the account of a server."
