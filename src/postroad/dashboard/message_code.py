"""`/messages/{id}/code`: the request that would send a message like this one, with curl and each client library."""

import base64
from typing import Final

from postroad.dashboard import literals, rendering, requests, snippets
from postroad.model import receipt
from postroad.services.messages import lookup as messages
from postroad.services.messages import previews
from postroad.web import routing

# More does not help anybody who copies it, and every language repeats it.
MAX_TEXT_CHARACTERS: Final = 16 * 1024
MAX_FILE_OCTETS: Final = 4 * 1024


async def show(request: requests.PageRequest) -> routing.Response:
    """The page; NotFound when the content is no longer retained."""
    ctx, account_id, message_id = request.ctx, request.account_id, request.path["id"]
    request.refuse_hidden(message_id)
    found = await messages.details(ctx, account_id, message_id)
    async with ctx.previews.hold(account_id):
        preview = await previews.of_message(ctx, account_id, message_id)
    files = [_file(preview, one) for one in preview.attachments]
    return request.page(
        "message_code.html",
        message=found.message,
        snippets=snippets.of_email(request.base_url.rstrip("/"), _members(found.receipt, preview), files=files),
        attachments=preview.attachments,
        is_cut=any(len(text or "") > MAX_TEXT_CHARACTERS for text in (preview.text, preview.html)),
    )


def _members(accepted: receipt.Receipt, preview: previews.Preview) -> literals.Members:
    given: dict[str, str | tuple[str, ...] | dict[str, str] | None] = {
        "from": accepted.sender,
        "to": accepted.to,
        "cc": accepted.cc,
        "bcc": accepted.bcc,
        "reply_to": accepted.reply_to or None,
        "subject": accepted.subject,
        "text": _text("TEXT", preview.text),
        "html": _text("HTML", preview.html),
        "headers": accepted.headers,
        "tags": accepted.tags,
        "metadata": accepted.metadata or None,
    }
    return {name: _seen(value) for name, value in given.items() if value}


def _seen(value: str | tuple[str, ...] | dict[str, str]) -> str | tuple[str, ...] | dict[str, str]:
    """The same without characters that a reader of the code would not see, and would run."""
    if isinstance(value, dict):
        return {rendering.plain(key): rendering.plain(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(map(rendering.plain, value))
    return rendering.plain(value.replace("\r\n", "\n"))


def _text(name: str, text: str | None) -> str | None:
    """The text, or a word in its place if it is too long."""
    return f"YOUR_{name}" if text is not None and len(text) > MAX_TEXT_CHARACTERS else text


def _file(preview: previews.Preview, one: previews.Attachment) -> dict[str, str]:
    content = f"BASE64_OF_{rendering.plain(one.filename)}"
    if one.size <= MAX_FILE_OCTETS:
        content = base64.b64encode(preview.reading.body(preview.reading.parts[one.index])).decode()
    named = {
        "filename": rendering.plain(one.filename),
        "content": content,
        "content_type": rendering.plain(one.content_type),
    }
    return {**named, "content_id": rendering.plain(one.content_id)} if one.content_id else named


ROUTES: Final = (requests.get("/messages/{id}/code", show, permission=requests.CONTENT),)
