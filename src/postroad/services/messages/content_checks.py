"""Checks of a message's content: HTML support by client, links, header fields, and size.

They run in a thread, on the part of a message that a preview shows, and list a bounded number of results. Nothing is
requested from anybody but SpamAssassin, if the operator has one.
"""

import functools
import ipaddress
import re
from collections.abc import Sequence
from enum import StrEnum
from importlib import resources
from typing import Final
from urllib import parse

import msgspec

from postroad import context, errors
from postroad.mail import return_path
from postroad.model.units import destinations
from postroad.network import spamd
from postroad.protocol.text import html_usage
from postroad.services import usage_limits
from postroad.services.messages import previews
from postroad.storage.mail import messages as stored

_ADDRESS: Final = re.compile(r"@([^\s@<>,;\"]+)>?\s*$")
_DKIM_DOMAIN: Final = re.compile(r"(?:^|;)\s*d\s*=\s*([^\s;]+)")


class Level(StrEnum):
    """How a finding is meant."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class CheckFinding(msgspec.Struct, frozen=True):
    """One result of a check, as a sentence."""

    level: Level
    text: str


class Origin(msgspec.Struct, frozen=True):
    """How a message is or was sent: the domain of its return path, and the one it is signed for when it is sent."""

    return_path_domain: str
    signing_domain: str = ""


def check_header(headers: Sequence[tuple[str, str]], origin: Origin) -> list[CheckFinding]:
    fields: dict[str, list[str]] = {}
    for name, value in headers:
        fields.setdefault(name.lower(), []).append(value)
    return [*_required(fields), *_alignment(fields, origin), _unsubscribe(fields)]


def _required(fields: dict[str, list[str]]) -> list[CheckFinding]:
    """Fields that occur exactly once (RFC 5322 section 3.6); spam filters count a missing Message-ID too."""
    findings = []
    for name in ("From", "Date", "Message-ID", "Subject"):
        count = len(fields.get(name.lower(), ()))
        if count == 0:
            findings.append(CheckFinding(Level.BAD, f"{name} is missing."))
        elif count > 1:
            findings.append(CheckFinding(Level.BAD, f"{name} occurs {count} times; it must occur once."))
    return findings or [CheckFinding(Level.GOOD, "From, Date, Message-ID and Subject are present.")]


def _alignment(fields: dict[str, list[str]], origin: Origin) -> list[CheckFinding]:
    found = _ADDRESS.search(fields.get("from", [""])[0])
    if found is None:
        return [CheckFinding(Level.BAD, "From has no address, so nothing can be aligned with it.")]
    sender = found[1].lower()
    signed = [match[1].lower() for value in fields.get("dkim-signature", ()) if (match := _DKIM_DOMAIN.search(value))]
    return [
        _dkim(sender, sorted(set(signed)), origin.signing_domain),
        _return_path(sender, origin.return_path_domain.lower()),
    ]


def _dkim(sender: str, signed: list[str], later: str) -> CheckFinding:
    if not signed and not later:
        return CheckFinding(Level.BAD, "The message has no DKIM signature. Gmail and Yahoo require one.")
    named = ", ".join(signed) or later
    if any(_is_aligned(sender, domain) for domain in signed or [later]):
        when = "" if signed else " It is signed when it is sent, if the domain is registered."
        return CheckFinding(
            Level.GOOD, f"The DKIM signature is for {named}, which is aligned with From ({sender}).{when}"
        )
    return CheckFinding(Level.BAD, f"The DKIM signature is for {named}, which is not aligned with From ({sender}).")


def _return_path(sender: str, domain: str) -> CheckFinding:
    if not domain:
        return CheckFinding(Level.WARN, "The return path is empty, as in delivery reports.")
    if _is_aligned(sender, domain):
        return CheckFinding(Level.GOOD, f"The return path is in {domain}, which is aligned with From ({sender}).")
    return CheckFinding(
        Level.WARN,
        f"The return path is in {domain}, which is not aligned with From ({sender}). "
        "SPF then does not count for DMARC; an aligned DKIM signature is enough.",
    )


def _is_aligned(sender: str, domain: str) -> bool:
    """Relaxed alignment, without a list of public suffixes: one is the other or a subdomain of it."""
    return destinations.is_below(sender, domain) or destinations.is_below(domain, sender)


def _unsubscribe(fields: dict[str, list[str]]) -> CheckFinding:
    listed = fields.get("list-unsubscribe", [""])[0].lower()
    if not listed:
        return CheckFinding(
            Level.WARN,
            "List-Unsubscribe is missing. Gmail and Yahoo require it of newsletters and other bulk mail; "
            "receipts and login codes do not need it.",
        )
    if "<https://" not in listed:
        return CheckFinding(
            Level.WARN, "List-Unsubscribe has no https:// URL, which one-click unsubscription needs (RFC 8058)."
        )
    if fields.get("list-unsubscribe-post", [""])[0].strip().lower() != "list-unsubscribe=one-click":
        return CheckFinding(
            Level.WARN,
            "List-Unsubscribe-Post: List-Unsubscribe=One-Click is missing, so it is not one-click (RFC 8058).",
        )
    return CheckFinding(Level.GOOD, "List-Unsubscribe is present, with one-click unsubscription.")


# What template languages leave behind, also percent-encoded.
_PLACEHOLDER: Final = re.compile(r"\{\{|\{%|\$\{|\*\||%7B%7B", re.IGNORECASE)
_RUNS: Final = frozenset({"javascript", "vbscript", "data"})
_OTHER_SCHEMES: Final = frozenset({"mailto", "tel", "sms"})
# A text that names a host, as people write one.
_SHOWN_HOST: Final = re.compile(
    r"(?:https?://)?(?:www\.)?([a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24})(?:[/?#:]\S*)?", re.IGNORECASE
)
_UNSUBSCRIBE_TEXT: Final = re.compile(
    r"unsubscri|opt[-_ ]?out|preferences|abmeld|abbestell|désabonn|desabonn|darse de baja", re.IGNORECASE
)


class CheckedLink(msgspec.Struct, frozen=True):
    link: html_usage.Link
    problems: list[str]


def check_links(link: html_usage.Link) -> CheckedLink:
    return CheckedLink(link, list(_problems(link)))


def is_unsubscribe(link: html_usage.Link) -> bool:
    return _UNSUBSCRIBE_TEXT.search(link.text) is not None or _UNSUBSCRIBE_TEXT.search(link.url) is not None


def _problems(link: html_usage.Link) -> list[str]:
    url = link.url
    if _PLACEHOLDER.search(url):
        return ["Contains a placeholder that was not replaced."]
    if url in ("", "#"):
        return ["Leads nowhere."]
    if url.startswith("#"):
        return []
    try:
        parts = parse.urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return ["Is not a valid URL."]
    return _of_web_page(link, parts.scheme, host) if parts.scheme in ("http", "https") else _of_other(parts.scheme)


def _of_other(scheme: str) -> list[str]:
    if not scheme:
        return ["Is relative. Write the whole URL, with https://."]
    if scheme in _RUNS:
        return [f"Mail clients remove links that start with {scheme}:."]
    return [] if scheme in _OTHER_SCHEMES else [f"Many mail clients do not open links that start with {scheme[:20]}:."]


def _of_web_page(link: html_usage.Link, scheme: str, host: str) -> list[str]:
    if not host:
        return ["Has no host."]
    return [
        *(["Is not encrypted. Use https://."] if scheme == "http" else []),
        *(["Leads to a private host, which recipients cannot reach."] if _is_private(host) else []),
        *_misleading(link.text, host),
    ]


def _is_private(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        pass
    suffixes = destinations.NON_PUBLIC_SUFFIXES
    return "." not in host or any(destinations.is_below(host, suffix) for suffix in suffixes)


def _misleading(text: str, host: str) -> list[str]:
    """Text that names another host than the link: spam filters and people take it for phishing."""
    shown = _SHOWN_HOST.fullmatch(text)
    if shown is None:
        return []
    name, actual = shown[1].lower(), host.removeprefix("www.")
    if destinations.is_below(actual, name) or destinations.is_below(name, actual):
        return []
    return [f"The text names {name}, but the link leads to {host}. Spam filters treat this as phishing."]


# Which mail clients support the HTML and CSS that a message uses, by the data of caniemail.com.
#
# `caniemail/manifest.toml` says where the data is from; tests/services/messages/caniemail_reducer.py renews it.

_SUPPORTED, _PARTLY, _NOT = "y", "a", "n"


class _Feature(msgspec.Struct, frozen=True):
    """A feature: `support` has a letter for each client."""

    title: str
    keys: tuple[str, ...]
    support: str


class _Data(msgspec.Struct, frozen=True):
    version: str
    updated: str
    clients: tuple[str, ...]
    features: tuple[_Feature, ...]


class LimitedFeature(msgspec.Struct, frozen=True):
    """HTML or CSS that the message uses and some mail clients do not support, or support in part."""

    title: str
    # The first that use it.
    lines: list[int]
    # Of the clients that were tested.
    supported_percent: int
    not_supported: list[str]
    partly_supported: list[str]


@functools.cache
def _data() -> _Data:
    """Read once, when first needed."""
    file = resources.files("postroad.services.messages").joinpath("caniemail", "features.json")
    return msgspec.json.decode(file.read_bytes(), type=_Data)


@functools.cache
def feature_keys() -> frozenset[str]:
    """The keys of `html_usage` that belong to a feature."""
    return frozenset(key for feature in _data().features for key in feature.keys)


def features_updated() -> str:
    return _data().updated


def limited_features(usage: html_usage.Usage) -> list[LimitedFeature]:
    """What not every client supports, the least supported first."""
    found = [
        _limited(feature, usage) for feature in _data().features if not usage.lines.keys().isdisjoint(feature.keys)
    ]
    limited = [feature for feature in found if feature.not_supported or feature.partly_supported]
    return sorted(limited, key=lambda feature: (feature.supported_percent, -len(feature.not_supported), feature.title))


def _limited(feature: _Feature, usage: html_usage.Usage) -> LimitedFeature:
    tested = len(feature.support) - feature.support.count("u")
    lines = {line for key in feature.keys for line in usage.lines.get(key, ())}
    return LimitedFeature(
        title=feature.title,
        lines=sorted(lines)[: html_usage.MAX_LINES],
        not_supported=_clients(feature, _NOT),
        partly_supported=_clients(feature, _PARTLY),
        supported_percent=feature.support.count(_SUPPORTED) * 100 // max(1, tested),
    )


def _clients(feature: _Feature, letter: str) -> list[str]:
    return [client for client, given in zip(_data().clients, feature.support, strict=True) if given == letter]


# Gmail shows no more of the HTML, and a link to the rest.
GMAIL_CLIP_BYTES: Final = 102 * 1024
# What other large providers accept at most is 25 MB; mail of this size is slow on phones.
LARGE_BYTES: Final = 5 * 1024 * 1024
# As spamc: larger messages take SpamAssassin long.
SPAM_BYTES: Final = 512 * 1024
# spamd has five processes unless it is told otherwise.
SPAM_CHECKS: Final = usage_limits.WorkLimit("spam checks", per_account=2, per_process=4, retry_seconds=5)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The results. `truncated`: the message is so large that only its beginning was checked."""

    headers: list[CheckFinding]
    content: list[CheckFinding]
    features: list[LimitedFeature]
    links: list[CheckedLink]
    more_links: int
    has_html: bool
    truncated: bool
    data_updated: str
    # None where the operator has no SpamAssassin.
    spam: spamd.Verdict | spamd.Failure | None = None

    @property
    def verdict(self) -> str:
        """How many findings there are, in words."""
        findings = [finding.level for finding in (*self.headers, *self.content)]
        problems = findings.count(Level.BAD)
        warnings = findings.count(Level.WARN) + sum(bool(checked.problems) for checked in self.links)
        counted = ((problems, "problem"), (warnings, "warning"))
        words = [f"{number} {name}{'s' if number > 1 else ''}" for number, name in counted if number]
        return ", ".join(words) or "passed"


async def origin_of(ctx: context.Context, account_id: str, message_id: str) -> Origin:
    async with ctx.store.reading() as tx:
        found = await stored.outgoing(tx, [(account_id, message_id)])
    if not found:
        raise errors.NotFound("no such message in this account, or its content is no longer retained")
    (message,) = found
    configured = ctx.settings.delivery.return_path_domain
    domain = return_path.domain_for(message.sender_key, chosen=message.return_path_domain, configured=configured)
    return Origin(domain, message.sender_key.rpartition("@")[2])


async def of_message(ctx: context.Context, account_id: str, message_id: str) -> Report:
    """Check a message of an account; NotFound as in `lookup.raw`."""
    async with ctx.previews.hold(account_id):
        preview = await previews.of_message(ctx, account_id, message_id)
        return await run(ctx, account_id, preview, await origin_of(ctx, account_id, message_id))


async def run(
    ctx: context.Context, account_id: str, preview: previews.Preview, origin: Origin, *, asks_spamd: bool = True
) -> Report:
    report = await ctx.threads.run(account_id, lambda: check(preview, origin))
    if not asks_spamd:
        return report
    return msgspec.structs.replace(report, spam=await ask_spamd(ctx, account_id, preview.reading.content))


async def ask_spamd(ctx: context.Context, account_id: str, raw: bytes) -> spamd.Verdict | spamd.Failure | None:
    """What SpamAssassin says, or why it says nothing; None where the operator has none."""
    address = ctx.settings.dashboard.spamd
    if not address:
        return None
    if len(raw) > SPAM_BYTES:
        return spamd.Failure("the message is larger than 512 KiB")
    try:
        with usage_limits.acquire(ctx, SPAM_CHECKS, account_id):
            return await spamd.check(address, raw)
    except errors.RateLimited as refusal:
        return spamd.Failure(refusal.message)


def check(preview: previews.Preview, origin: Origin) -> Report:
    usage = html_usage.scan(preview.html or "", feature_keys())
    return Report(
        headers=check_header(preview.headers, origin),
        content=[*_size(preview), *_parts(preview), *_images(usage), *_unsubscribe_link(preview, usage)],
        features=limited_features(usage),
        links=sorted(map(check_links, usage.links), key=lambda checked: not checked.problems),
        more_links=usage.more_links,
        has_html=preview.html is not None,
        truncated=preview.truncated,
        data_updated=features_updated(),
    )


def _size(preview: previews.Preview) -> list[CheckFinding]:
    findings = []
    octets = len((preview.html or "").encode())
    if octets > GMAIL_CLIP_BYTES:
        findings.append(CheckFinding(Level.BAD, f"The HTML is {_kilobytes(octets)}. Gmail clips it after 102 KB."))
    elif preview.html is not None:
        findings.append(CheckFinding(Level.GOOD, f"The HTML is {_kilobytes(octets)}; Gmail clips it after 102 KB."))
    if preview.size > LARGE_BYTES:
        findings.append(
            CheckFinding(Level.WARN, f"The message is {_kilobytes(preview.size)}, which is slow on phones.")
        )
    return findings


def _kilobytes(octets: int) -> str:
    return f"{-(-octets // 1024):,} KB"


def _parts(preview: previews.Preview) -> list[CheckFinding]:
    if preview.text is None:
        return [
            CheckFinding(
                Level.WARN, "There is no text part. Spam filters prefer mail with one, and some people read it."
            )
        ]
    if not preview.text.strip():
        return [CheckFinding(Level.WARN, "The text part is empty. Leave it out, or write the message in it too.")]
    return [CheckFinding(Level.GOOD, "The message has a text part.")]


def _images(usage: html_usage.Usage) -> list[CheckFinding]:
    if not usage.images:
        return []
    if usage.images_without_alt:
        counted = f"{usage.images_without_alt} of {usage.images} images"
        return [CheckFinding(Level.WARN, f"{counted} have no alt text, which is shown while images are blocked.")]
    return [CheckFinding(Level.GOOD, "All images have an alt attribute.")]


def _unsubscribe_link(preview: previews.Preview, usage: html_usage.Usage) -> list[CheckFinding]:
    is_listed = any(name.lower() == "list-unsubscribe" for name, _ in preview.headers)
    if not is_listed or any(map(is_unsubscribe, usage.links)):
        return []
    return [CheckFinding(Level.WARN, "List-Unsubscribe is present, but no link in the HTML says how to unsubscribe.")]
