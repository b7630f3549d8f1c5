"""`postroad send`: queue a test message for a running service, and optionally wait for the result."""

import base64
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from postroad import errors
from postroad.cli import account_option, command, output, send_progress
from postroad.model import caller, identifiers, limits, mail, send_request
from postroad.services import context as services_context
from postroad.services.acceptance import submit

STANDARD_INPUT = "-"

_OPTIONS: Final[list[click.Parameter]] = [
    click.Option(["--from", "sender"], required=True, metavar="ADDRESS", help="Sender, at a domain of the account."),
    click.Option(["--to"], required=True, multiple=True, metavar="ADDRESS", help="Recipient; repeatable."),
    click.Option(["--cc"], multiple=True, metavar="ADDRESS", help="Cc recipient; repeatable."),
    click.Option(["--bcc"], multiple=True, metavar="ADDRESS", help="Bcc recipient; repeatable."),
    click.Option(["--reply-to"], metavar="ADDRESS", help="Reply-To address."),
    click.Option(["--subject"], help="Subject."),
    click.Option(["--text"], help="Plain text body; - reads it from standard input."),
    click.Option(["--html"], help="HTML body."),
    click.Option(["--template"], metavar="ALIAS", help="Template of the account, instead of a body."),
    click.Option(["--var", "variables"], multiple=True, metavar="NAME=VALUE", help="Template variable; repeatable."),
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
    account_option.OPTION,
]


@click.command("send", cls=command.StoreCommand, params=_OPTIONS)
async def send(
    context: services_context.Context, *, account: str | None, key: str | None, wait: int | None, **fields: Any
) -> output.Report:
    """Send a test message. A running service delivers it."""
    found = await account_option.account(context, account)
    who = caller.Caller(found.id, None, caller.Scheme.TOKEN, caller.EVERYTHING)
    request = _request(fields)
    accepted = await submit.submit(
        context,
        who,
        request,
        request_id=context.new_id(identifiers.REQUEST, now=context.clock()),
        source=mail.Source.TEST,
        key=None if key is None else _key(key),
    )
    if wait is None:
        return await send_progress.queued(context, found.id, accepted)
    return await send_progress.result(context, found.id, accepted, seconds=wait)


def _request(fields: dict[str, Any]) -> send_request.SendRequest:
    return send_request.SendRequest(
        sender=fields["sender"],
        to=fields["to"],
        cc=fields["cc"],
        bcc=fields["bcc"],
        reply_to=fields["reply_to"],
        subject=fields["subject"],
        text=_text(fields["text"]),
        html=fields["html"],
        template=fields["template"],
        variables=_pairs("--var", fields["variables"], "=") or None,
        headers={name.strip(): value.strip() for name, value in _pairs("--header", fields["headers"], ":").items()},
        tags=fields["tags"],
        attachments=tuple(_attachment(file) for file in fields["files"]),
    )


def _key(text: str) -> str:
    if not 1 <= len(text) <= limits.IDEMPOTENCY_KEY_CHARACTERS:
        raise errors.InvalidRequest(f"--key: must have 1 to {limits.IDEMPOTENCY_KEY_CHARACTERS} characters")
    return text


def _text(given: str | None) -> str | None:
    if given != STANDARD_INPUT:
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
            raise errors.InvalidRequest(f"{option}: {text!r} is not of the form name{separator}value")
        if name in pairs:
            raise errors.InvalidRequest(f"{option}: {name!r} is given twice")
        pairs[name] = value
    return pairs


def _attachment(file: Path) -> send_request.Attachment:
    try:
        if file.stat().st_size > limits.MIME_BYTES:
            raise errors.PayloadTooLarge(f"--attach: {file} exceeds the message size limit of 10 MiB")
        content = file.read_bytes()
    except OSError as problem:
        raise errors.InvalidRequest(f"--attach: {file} cannot be read: {problem.strerror}") from None
    return send_request.Attachment(file.name, base64.b64encode(content).decode())
