"""`postroad send`: everything a message can have, by the only way in, and its result."""

import email
import email.policy
import json
import shlex
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from postroad.services.messages import lookup as messages
from tests.cli import cli_runner
from tests.cli.cli_runner import Installation

HELLO = ("--from", "Shop <shop@example.com>", "--to", "ada@example.net", "--subject", "Hello", "--text", "Hi")


@pytest.fixture
def shop(installation: Installation) -> Installation:
    """An installation whose account can send."""
    installation.text("domain", "add", "example.com", "--verified")
    installation.text("credits", "add", "--amount", "100")
    return installation


def content(shop: Installation, sent: dict[str, Any]) -> EmailMessage:
    account_id = shop.json("account", "show", "Shop")["account"]["id"]
    raw = shop.ask(lambda ctx: messages.raw(ctx, account_id, sent["message"]["id"]))
    return email.message_from_bytes(raw, policy=email.policy.default)


def test_everything_that_a_message_can_have_is_in_it(shop: Installation, tmp_path: Path) -> None:
    file = tmp_path / "bill.pdf"
    file.write_bytes(b"%PDF-1.7\0\xff")
    sent = shop.json(
        *("send", *HELLO, "--to", "bob@example.net", "--cc", "cy@example.net", "--bcc", "dee@example.net"),
        *("--reply-to", "help@example.com", "--html", "<p>Hi</p>", "--header", "X-Order: 42", "--tag", "receipt"),
        *("--reply-to", "Sales <sales@example.com>", "--attach", str(file), "--key", "order-42"),
    )
    recipients = shop.json("show", sent["message"]["id"])["recipients"]
    assert [one["email"].partition("@")[0] for one in recipients] == ["ada", "bob", "cy", "dee"]
    mime = content(shop, sent)
    assert (mime["From"], mime["To"], mime["Cc"], mime["Bcc"]) == (
        "Shop <shop@example.com>",
        "ada@example.net, bob@example.net",
        "cy@example.net",
        None,
    )
    assert mime["Reply-To"] == "help@example.com, Sales <sales@example.com>"
    assert (mime["X-Order"], mime["Subject"]) == ("42", "Hello")
    (attached,) = mime.iter_attachments()
    assert (attached.get_filename(), attached.get_content()) == ("bill.pdf", b"%PDF-1.7\0\xff")


def test_a_template_gets_its_values(shop: Installation) -> None:
    shop.text("template", "put", "hi", "--subject", "Hi {{name}}", "--text", "Order {{order}}")
    sent = shop.json(
        *("send", "--from", "shop@example.com", "--to", "ada@example.net", "--template", "hi"),
        *("--var", "name=Ada = me", "--var", "order=42"),
    )
    mime = content(shop, sent)
    assert (mime["Subject"], mime.get_content().strip()) == ("Hi Ada = me", "Order 42")


def test_the_text_is_read_from_standard_input(shop: Installation) -> None:
    sent = shop.json("send", *HELLO[:-1], "-", given="Grüße\n")
    assert content(shop, sent).get_content().strip() == "Grüße"


def test_the_same_key_sends_once(shop: Installation) -> None:
    first = shop.json("send", *HELLO, "--key", "order-1")
    again = shop.json("send", *HELLO, "--key", "order-1")
    assert first["message"] == again["message"]
    assert "different" in shop.refusal("send", *HELLO, "--cc", "bob@example.net", "--key", "order-1")
    assert len(shop.json("queue", "list")["recipients"]) == 1


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("--var", "name"), "--var: 'name' is not of the form name=value"),
        (("--var", "a=1", "--var", "a=2"), "--var: 'a' is given twice"),
        (("--header", "X-Order"), "--header: 'X-Order' is not of the form name:value"),
        (("--header", ": 1"), "--header: ': 1' is not of the form name:value"),
        (("--key", ""), "--key: must have 1 to 255 characters"),
    ],
)
def test_an_option_of_a_wrong_form_is_a_usage_error_and_nothing_is_queued(
    shop: Installation, words: tuple[str, ...], sentence: str
) -> None:
    assert cli_runner.usage_error(shop.run("send", *HELLO, *words)) == sentence
    assert shop.json("queue", "list")["recipients"] == []


def test_a_file_that_is_too_large_or_cannot_be_read_is_refused(shop: Installation, tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    with large.open("wb") as file:
        file.truncate(10 * 1024 * 1024 + 1)
    assert shop.refusal("send", *HELLO, "--attach", str(large)).endswith("exceeds the message size limit of 10 MiB")
    missing = shop.run("send", *HELLO, "--attach", str(tmp_path / "missing"))
    assert missing.exit_code == 2


def test_a_text_that_is_too_large_or_no_text_is_refused(shop: Installation) -> None:
    assert "10 MiB" in shop.refusal("send", *HELLO[:-1], "-", given="x" * (10 * 1024 * 1024 + 1))
    latin: Any = "Grüße".encode("latin-1")
    assert shop.refusal("send", *HELLO[:-1], "-", given=latin) == "--text: standard input is not UTF-8 text"


def test_what_is_held_is_said_to_be_held_and_by_what(shop: Installation) -> None:
    shop.text("queue", "hold", "--domain", "example.net")
    result = shop.run("send", *HELLO, "--wait", "1")
    assert result.exit_code == 1
    summary, recipient, hint = result.stdout.splitlines()
    assert recipient == "ada@example.net: queued, held by the operator of this service"
    show = f"postroad show {summary.split()[0]} --config {shlex.quote(str(shop.file))}"
    assert hint == f"Not final after 1 s; '{show}' shows more."
    (told,) = json.loads(shop.run("send", *HELLO, "--wait", "1", "--json").stdout)["message"]["recipients"]
    assert told["queue"]["reason"]["text"] == "held by the operator of this service"


def test_without_a_service_the_wait_ends_with_the_right_question(shop: Installation) -> None:
    result = shop.run("send", *HELLO, "--wait", "1")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[1:] == ["ada@example.net: queued", "No attempt within 1 s; check that the service is running."]
