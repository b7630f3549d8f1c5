"""Attachments with a `path`: the URL is fetched, and its content takes the place of the path."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from urllib import parse

import msgspec

from postroad import context, errors
from postroad.services.messages import attachment_urls
from postroad_resend import payload


@contextlib.asynccontextmanager
async def fetched(
    ctx: context.Context, account_id: str, emails: Sequence[payload.Email]
) -> AsyncIterator[list[payload.Email | errors.InvalidRequest]]:
    """The messages with the files of their paths, or the reason why one has none, until they are sent."""
    if not any(attachment.path is not None for email in emails for attachment in email.attachments or ()):
        yield list(emails)
        return
    done: list[payload.Email | errors.InvalidRequest] = []
    async with attachment_urls.fetching(ctx, account_id) as fetcher:
        for email in emails:
            try:
                files = [
                    await _fetch(fetcher, attachment, f"attachments[{place}].path")
                    for place, attachment in enumerate(email.attachments or ())
                ]
                done.append(msgspec.structs.replace(email, attachments=files))
            except errors.InvalidRequest as refusal:
                done.append(refusal)
        yield done


async def _fetch(
    fetcher: attachment_urls.AttachmentFetcher, given: payload.Attachment, field: str
) -> payload.Attachment:
    if given.path is None:
        return given
    if given.content is not None:
        raise errors.InvalidRequest(f"{field}: give either path or content, not both")
    content = await fetcher.fetch(field, given.path, encode=payload.encode)
    return msgspec.structs.replace(given, path=None, content=content, filename=given.filename or _name(given.path))


def _name(url: str) -> str | None:
    """The last part of the URL's path."""
    with contextlib.suppress(ValueError):
        return parse.unquote(parse.urlsplit(url).path.rpartition("/")[2]) or None
    return None
