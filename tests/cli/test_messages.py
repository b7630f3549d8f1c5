"""`postroad send`, `messages` and `show` with a real server."""

import json
import re
from pathlib import Path

import pytest

from tests.cli import cli_runner, scripted_server, server_runner
from tests.cli.server_runner import Server, home, remote, server

__all__ = ["home", "remote", "server"]
SEND = ("send", "--from", "Shop <shop@example.com>", "--subject", "Hello", "--text", "Hi")


def test_a_message_is_sent_listed_and_told_in_full(remote: Server, tmp_path: Path) -> None:
    del remote
    file = tmp_path / "bill.txt"
    file.write_text("42")
    said = server_runner.text(
        *(*SEND, "--to", "ada@example.net", "--to", "bounce@example.net", "--tag", "receipt", "--wait", "600"),
        *("--attach", str(file), "--header", "X-Order: 42"),
    )
    found = re.fullmatch(
        r"(em_\w+) is queued, for 2 recipients\.\n"
        r"ada@example.net: delivered, 250 .*\nbounce@example.net: bounced, 550 .*\n",
        said,
    )
    assert found is not None, said
    (row,) = [line for line in server_runner.text("messages", "--tag", "receipt").splitlines() if found[1] in line]
    assert row.endswith("  partial  2           Shop <shop@example.com>  Hello")
    assert server_runner.text("messages", "--tag", "other") == "No messages match.\n"
    assert found[1] in server_runner.text("messages", "--search", "tag:receipt -tag:other")
    assert server_runner.text("messages", "--search", "tag:other OR -tag:receipt") == "No messages match.\n"
    story = server_runner.text("show", found[1])
    assert story.startswith(f"{found[1]}: partial\nFrom: Shop <shop@example.com>\nSubject: Hello\n")
    assert "\nTags: receipt\n" in story
    assert re.search(r"\nada@example.net: delivered\n  Attempt 1, \S+: delivered, .*\n    Reply: 250 ", story)
    assert re.search(r"\nbounce@example.net: bounced\n  Attempt 1, \S+: bounced, .*\n    Reply: 550 5.1.1 ", story)


def test_json_has_the_members_of_the_api(remote: Server) -> None:
    del remote
    sent = server_runner.data(*SEND, "--to", "json@example.net", "--key", "json-1")["message"]
    again = server_runner.data(*SEND, "--to", "json@example.net", "--key", "json-1")["message"]
    assert (sent["status"], again["id"]) == ("queued", sent["id"])
    assert server_runner.data("messages", "--to", "json@example.net")["messages"][0]["id"] == sent["id"]
    shown = server_runner.data("show", sent["id"])
    assert (shown["id"], shown["events"]) == (sent["id"], [])


def test_why_a_message_waits_is_shown_and_waiting_for_it_ends(remote: Server) -> None:
    del remote
    result = cli_runner.run(*SEND, "--to", "fail@example.net", "--wait", "1")
    assert (result.exit_code, "Not final after 1 s; 'postroad show em_" in result.stdout) == (1, True)
    message_id = result.stdout.split()[0]
    # A slow machine may not have tried it within that second.
    while not (tried := re.search(r"\nfail@example.net: deferred\n", story := server_runner.text("show", message_id))):
        assert "fail@example.net: queued" in story
    assert re.match(r"  Attempt 1, \S+: deferred, ", story[tried.end() :])
    assert "\n  Waiting: " in story


def test_the_error_names_the_scope_that_is_missing(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    monkeypatch.setenv("POSTROAD_URL", server.url)
    monkeypatch.setenv("POSTROAD_API_KEY", server.key_with("read"))
    said = server_runner.refusal(cli_runner.run(*SEND, "--to", "ada@example.net"), exit_code=3)
    assert "does not have the scope 'send'" in said
    monkeypatch.setenv("POSTROAD_API_KEY", server.key)
    sent = server_runner.data(*SEND, "--to", "ada@example.net")["message"]
    monkeypatch.setenv("POSTROAD_API_KEY", server.key_with("read"))
    assert "Webhooks are not shown: the key does not have the scope 'webhooks'." in server_runner.text(
        "show", sent["id"]
    )


@pytest.mark.parametrize("message_id", ["em_00000000000000000000000000", "../account", "a b?c#d"])
def test_an_id_that_does_not_exist_is_an_error(remote: Server, message_id: str) -> None:
    del remote
    assert "no such" in server_runner.refusal(cli_runner.run("show", message_id), exit_code=1)


def test_what_the_server_refuses_is_said_and_bad_input_is_never_sent(remote: Server) -> None:
    del remote
    said = server_runner.refusal(cli_runner.run(*SEND, "--to", "nobody"), exit_code=1)
    assert said == "to: 'nobody' is not an email address: there is no '@'"
    elsewhere = cli_runner.run("send", "--from", "a@b.example", "--to", "a@b.c", "--subject", "x", "--text", "x")
    assert "not a domain of this account" in server_runner.refusal(elsewhere, exit_code=1)
    assert "--header" in server_runner.refusal(cli_runner.run(*SEND, "--to", "a@b.c", "--header", "x"), exit_code=2)
    assert "after" in server_runner.refusal(cli_runner.run("messages", "--after", "yesterday"), exit_code=1)


def test_a_send_that_waits_for_approval_can_be_repeated(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
    waits = b'{"error": "waits; repeat the request with the same Idempotency-Key", "code": "forbidden"}'
    with scripted_server.answering(waits, status=403) as server:
        words = (*SEND, "--to", "a@b.example", "--url", server.url)
        said = server_runner.refusal(cli_runner.run(*words), exit_code=1)
        named = server_runner.refusal(cli_runner.run(*words, "--key", "mine"), exit_code=1)
    assert re.fullmatch(r"waits; .* the same Idempotency-Key\. To repeat it: --key cli-[0-9a-f]{32}", said)
    assert named.endswith("the same Idempotency-Key")


def test_a_send_without_a_response_says_how_to_repeat_it_safely(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
    with scripted_server.answering(b"") as gone:
        pass
    said = server_runner.refusal(cli_runner.run(*SEND, "--to", "a@b.example", "--url", gone.url), exit_code=4)
    assert re.search(r"repeat the command with --key cli-[0-9a-f]{32}, which cannot send it twice", said)


def test_nothing_that_a_server_sends_can_control_the_terminal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
    escape = "\x1b]0;gone\x07\u202e\n"
    one = dict.fromkeys(("id", "status", "from", "subject", "email", "created_at", "host", "verdict"), escape)
    hostile = {
        **one,
        "messages": [one, 7],
        "next_cursor": escape,
        "recipients": [{**one, "queue": {"reason": {"text": escape}}}, None],
        "attempts": [{**one, "smtp_response": escape, "explanation": escape}],
        "async_bounces": [{"response": escape}],
        "webhooks": [one],
        "deliveries": [one],
        "tags": [escape],
        "metadata": {escape: escape},
    }
    with scripted_server.answering(json.dumps(hostile).encode()) as server:
        for words in (["messages"], ["show", "em_1"], [*SEND, "--to", "a@b.example", "--wait", "1"]):
            printed = cli_runner.run(*words, "--url", server.url).stdout
            assert r"\x1b]0;gone\x07\u202e\n" in printed
            assert [one for one in printed if not one.isprintable() and one != "\n"] == []
