"""`postroad send`: send a message, and optionally wait for the result."""

import base64
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib import parse

import click

from postroad import errors
from postroad.cli.framework import output, server_command
from postroad.model.mail import limits
from postroad.network.http import api_client

# Often enough for a person, and a small part of what a key may do.
POLL_SECONDS: Final = 0.5
NOT_FINAL: Final = ("queued", "deferred")
# Why a recipient waits that is due.
READY: Final = "ready"

_OPTIONS: Final[list[click.Parameter]] = [
    click.Option(["--from", "sender"], required=True, metavar="ADDRESS", help="Sender, at a domain of the account."),
    click.Option(["--to"], required=True, multiple=True, metavar="ADDRESS", help="Recipient; repeatable."),
    click.Option(["--cc"], multiple=True, metavar="ADDRESS", help="Cc recipient; repeatable."),
    click.Option(["--bcc"], multiple=True, metavar="ADDRESS", help="Bcc recipient; repeatable."),
    click.Option(["--reply-to"], multiple=True, metavar="ADDRESS", help="Reply-To address; repeatable."),
    click.Option(["--subject"], help="Subject."),
    click.Option(["--text"], help="Plain text body; - reads it from standard input."),
    click.Option(["--html"], help="HTML body."),
    click.Option(["--template"], metavar="ALIAS", help="Template of the account, instead of a body."),
    click.Option(
        ["--var", "variables"], multiple=True, metavar="NAME=VALUE", help="Template variable, a text; repeatable."
    ),
    click.Option(["--header", "headers"], multiple=True, metavar="NAME:VALUE", help="Header field; repeatable."),
    click.Option(["--tag", "tags"], multiple=True, help="Tag; repeatable."),
    click.Option(
        ["--attach", "files"],
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="File to attach; repeatable.",
    ),
    click.Option(["--key"], help="Idempotency key; a repeated key does not send again."),
    click.Option(
        ["--wait"], type=click.IntRange(1, 86_400), metavar="SECONDS", help="Wait up to this long for the result."
    ),
]


@click.command("send", cls=server_command.ServerCommand, params=_OPTIONS)
def send(server: api_client.Client, *, key: str | None, wait: int | None, **fields: Any) -> output.Report:
    """Send a message. With --data or --config, a running service delivers it.

    If the connection breaks, the error names the key to pass as --key, so that a second try sends nothing twice. With
    --wait, the exit code is 1 if a result is missing by then.
    """
    if key is not None and not (1 <= len(key) <= limits.IDEMPOTENCY_KEY_CHARACTERS and key.isprintable()):
        raise click.UsageError(f"--key: must have 1 to {limits.IDEMPOTENCY_KEY_CHARACTERS} characters")
    given = key or f"cli-{os.urandom(16).hex()}"
    body = {name: value for name, value in _message(fields).items() if value}
    try:
        accepted = server.call("POST", "/emails", body, headers={"Idempotency-Key": given})
    except api_client.ServerError as problem:
        if problem.status == server_command.FORBIDDEN and key is None:  # perhaps it waits for approval
            raise api_client.ServerError(f"{problem}. To repeat it: --key {given}", status=problem.status) from None
        if problem.status is not None:
            raise
        raise api_client.ServerError(
            f"{problem}. It is unknown whether the message was accepted; repeat the command with --key {given}, "
            "which cannot send it twice"
        ) from None
    found = accepted if wait is None else _result(server, str(accepted.get("id")), seconds=wait)
    return _report(found, seconds=wait)


def _message(fields: dict[str, Any]) -> dict[str, Any]:
    headers = {name.strip(): value.strip() for name, value in _pairs("--header", fields["headers"], ":").items()}
    return {
        "from": fields["sender"],
        "to": list(fields["to"]),
        "cc": list(fields["cc"]),
        "bcc": list(fields["bcc"]),
        "reply_to": list(fields["reply_to"]),
        "subject": fields["subject"],
        "text": _text(fields["text"]),
        "html": fields["html"],
        "template": fields["template"],
        "variables": _pairs("--var", fields["variables"], "=") or None,
        "headers": headers,
        "tags": list(fields["tags"]),
        "attachments": [_attachment(file) for file in fields["files"]],
    }


def _result(server: api_client.Client, message_id: str, *, seconds: int) -> dict[str, Any]:
    """The message when all its recipients are final, or when the time is over, with why they wait."""
    deadline = time.monotonic() + seconds
    path = f"/emails/{parse.quote(message_id, safe='')}"
    while time.monotonic() < deadline:
        found = server.get(path)
        if found.get("status") != NOT_FINAL[0]:
            return found
        time.sleep(POLL_SECONDS)
    return server.get(path, include="queue")


def _report(found: dict[str, Any], *, seconds: int | None) -> output.Report:
    recipients = [*server_command.objects(found.get("recipients"))]
    lines = [f"{found.get('id')} is queued, for {output.recipients(found.get('recipient_count'))}."]
    lines += [
        f"{recipient.get('email')}: {recipient.get('status')}{_reply(recipient)}{_reason(recipient)}"
        for recipient in recipients
    ]
    missing = [recipient for recipient in recipients if recipient.get("status") in NOT_FINAL]
    if missing and all(_wait_reason(recipient).get("code") == READY for recipient in missing):
        lines.append(f"No attempt within {seconds} s; check that the service is running.")
    elif missing:
        show = f"postroad show {found.get('id')}{server_command.installation_option()}"
        lines.append(f"Not final after {seconds} s; '{show}' shows more.")
    text = "\n".join(map(output.printable, lines))
    return output.Report(data={"message": found}, text=text, exit_code=1 if missing else 0)


def _reply(recipient: dict[str, Any]) -> str:
    reply = f"{recipient.get('last_smtp_code') or ''} {recipient.get('last_smtp_response') or ''}".strip()
    return f", {reply}" if reply else ""


def _reason(recipient: dict[str, Any]) -> str:
    reason = _wait_reason(recipient)
    # That it is ready says nothing new.
    return f", {reason.get('text')}" if reason and reason.get("code") != READY else ""


def _wait_reason(recipient: dict[str, Any]) -> dict[str, Any]:
    queue = recipient.get("queue")
    reason = queue.get("reason") if isinstance(queue, dict) else None
    return reason if isinstance(reason, dict) else {}


def _text(given: str | None) -> str | None:
    if given != "-":
        return given
    # One byte beyond the limit is enough to know that the text is too large.
    raw = sys.stdin.buffer.read(limits.MIME_BYTES + 1)
    if len(raw) > limits.MIME_BYTES:
        raise errors.PayloadTooLarge("--text: exceeds the message size limit of 10 MiB")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise errors.InvalidRequest("--text: standard input is not UTF-8 text") from None


def _pairs(option: str, given: Sequence[str], separator: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        name, found, value = text.partition(separator)
        if not found or not name.strip():
            raise click.UsageError(f"{option}: {text!r} is not of the form name{separator}value")
        if name in pairs:
            raise click.UsageError(f"{option}: {name!r} is given twice")
        pairs[name] = value
    return pairs


def _attachment(file: Path) -> dict[str, str]:
    try:
        if file.stat().st_size > limits.MIME_BYTES:
            raise errors.PayloadTooLarge(f"--attach: {file} exceeds the message size limit of 10 MiB")
        content = file.read_bytes()
    except OSError as problem:
        raise errors.InvalidRequest(f"--attach: {file} cannot be read: {problem.strerror}") from None
    return {"filename": file.name, "content": base64.b64encode(content).decode()}
