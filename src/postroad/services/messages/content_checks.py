"""Checks of a message's content: HTML support by client, links, header fields, and size.

They run in a thread, on the part of a message that a preview shows, and list a bounded number of results. Nothing is
requested from anybody but SpamAssassin, if the operator has one.
"""

from typing import Final

import msgspec

from postroad import errors
from postroad.network import spamd
from postroad.protocol import html_usage
from postroad.services import context, return_path, work_limits
from postroad.services.messages import header_checks, html_support, link_checks, previews
from postroad.services.messages.header_checks import Finding, Level
from postroad.storage import messages as stored

# Gmail shows no more of the HTML, and a link to the rest.
GMAIL_CLIP_BYTES: Final = 102 * 1024
# What other large providers accept at most is 25 MB; mail of this size is slow on phones.
LARGE_BYTES: Final = 5 * 1024 * 1024
# As spamc: larger messages take SpamAssassin long.
SPAM_BYTES: Final = 512 * 1024
# spamd has five processes unless it is told otherwise.
SPAM_CHECKS: Final = work_limits.WorkLimit("spam checks", per_account=2, per_process=4, retry_seconds=5)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The results. `truncated`: the message is so large that only its beginning was checked."""

    headers: list[Finding]
    content: list[Finding]
    features: list[html_support.LimitedFeature]
    links: list[link_checks.CheckedLink]
    more_links: int
    has_html: bool
    truncated: bool
    data_updated: str
    # None where the operator has no SpamAssassin.
    spam: spamd.Verdict | spamd.Failure | None = None


async def origin_of(ctx: context.Context, account_id: str, message_id: str) -> header_checks.Origin:
    """How a message of an account is sent."""
    async with ctx.store.reading() as tx:
        found = await stored.outgoing(tx, [(account_id, message_id)])
    if not found:
        raise errors.NotFound("no such message in this account, or its content is no longer retained")
    (message,) = found
    configured = ctx.settings.delivery.return_path_domain
    domain = return_path.domain_for(message.sender_key, chosen=message.return_path_domain, configured=configured)
    return header_checks.Origin(domain, message.sender_key.rpartition("@")[2])


async def of_message(ctx: context.Context, account_id: str, message_id: str) -> Report:
    """Check a message of an account; NotFound as in `lookup.raw`."""
    async with ctx.previews.hold(account_id):
        preview = await previews.of_message(ctx, account_id, message_id)
        return await run(ctx, account_id, preview, await origin_of(ctx, account_id, message_id))


async def run(ctx: context.Context, account_id: str, preview: previews.Preview, origin: header_checks.Origin) -> Report:
    """Check a message."""
    report = await ctx.threads.run(account_id, lambda: check(preview, origin))
    return msgspec.structs.replace(report, spam=await _spam(ctx, account_id, preview.reading.content))


async def _spam(ctx: context.Context, account_id: str, raw: bytes) -> spamd.Verdict | spamd.Failure | None:
    address = ctx.settings.dashboard.spamd
    if not address:
        return None
    if len(raw) > SPAM_BYTES:
        return spamd.Failure("the message is larger than 512 KiB")
    try:
        with work_limits.acquire(ctx, SPAM_CHECKS, account_id):
            return await spamd.check(address, raw)
    except errors.RateLimited as refusal:
        return spamd.Failure(refusal.message)


def check(preview: previews.Preview, origin: header_checks.Origin) -> Report:
    """The same, at once."""
    usage = html_usage.scan(preview.html or "", html_support.keys())
    return Report(
        headers=header_checks.check(preview.headers, origin),
        content=_content(preview, usage),
        features=html_support.limited_features(usage),
        links=sorted(map(link_checks.check, usage.links), key=lambda checked: not checked.problems),
        more_links=usage.more_links,
        has_html=preview.html is not None,
        truncated=preview.truncated,
        data_updated=html_support.updated(),
    )


def _content(preview: previews.Preview, usage: html_usage.Usage) -> list[Finding]:
    return [*_size(preview), *_parts(preview), *_images(usage), *_unsubscribe_link(preview, usage)]


def _size(preview: previews.Preview) -> list[Finding]:
    findings = []
    octets = len((preview.html or "").encode())
    if octets > GMAIL_CLIP_BYTES:
        findings.append(Finding(Level.BAD, f"The HTML is {_kilobytes(octets)}. Gmail clips it after 102 KB."))
    elif preview.html is not None:
        findings.append(Finding(Level.GOOD, f"The HTML is {_kilobytes(octets)}; Gmail clips it after 102 KB."))
    if preview.size > LARGE_BYTES:
        findings.append(Finding(Level.WARN, f"The message is {_kilobytes(preview.size)}, which is slow on phones."))
    return findings


def _kilobytes(octets: int) -> str:
    return f"{-(-octets // 1024):,} KB"


def _parts(preview: previews.Preview) -> list[Finding]:
    if preview.text is None:
        return [
            Finding(Level.WARN, "There is no text part. Spam filters prefer mail with one, and some people read it.")
        ]
    if not preview.text.strip():
        return [Finding(Level.WARN, "The text part is empty. Leave it out, or write the message in it too.")]
    return [Finding(Level.GOOD, "The message has a text part.")]


def _images(usage: html_usage.Usage) -> list[Finding]:
    if not usage.images:
        return []
    if usage.images_without_alt:
        counted = f"{usage.images_without_alt} of {usage.images} images"
        return [Finding(Level.WARN, f"{counted} have no alt text, which is shown while images are blocked.")]
    return [Finding(Level.GOOD, "All images have an alt attribute.")]


def _unsubscribe_link(preview: previews.Preview, usage: html_usage.Usage) -> list[Finding]:
    is_listed = any(name.lower() == "list-unsubscribe" for name, _ in preview.headers)
    if not is_listed or any(map(link_checks.is_unsubscribe, usage.links)):
        return []
    return [Finding(Level.WARN, "List-Unsubscribe is present, but no link in the HTML says how to unsubscribe.")]
