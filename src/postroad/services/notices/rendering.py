"""Renders notices from the templates in `texts/`: plain text, and the same as HTML in one layout.

A template begins with its subject. Values are cut, have no control characters, and are escaped in HTML; in those that
strangers write as they like, nothing looks like a link. The only links are our own.
"""

import functools
import html
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Final

import msgspec

from postroad.protocol import mustache
from postroad.services.notices import kinds

# A name of an account may have 200; a reader needs its beginning.
FREE_CHARACTERS: Final = 80
VALUE_CHARACTERS: Final = 500
MAX_DIGEST_ITEMS: Final = 50
DIGEST: Final = "digest"
_SUBJECT: Final = "Subject: "
# Control characters, line and paragraph separators, and marks that reverse the direction of text.
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
# A time as the API has it.
_TIME: Final = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z")
# What mail programs turn into a link: a colon before slashes, a dot before a letter as in a host name, an address.
_LINKED: Final = re.compile(r"(?<=\w)(?:@(?=\w)|\.(?=[^\W\d]))|:(?=//)")


class Rendered(msgspec.Struct, frozen=True):
    """A mail."""

    subject: str
    text: str
    html: str


class Footer(msgspec.Struct, frozen=True):
    """Where to choose what one gets by mail, and how to get no more of this kind; empty where that is impossible."""

    profile: str = ""
    unsubscribe: str = ""


def render(kind: str, values: Mapping[str, str], *, link: str, footer: Footer) -> Rendered:
    """A notice as a mail."""
    shown = cleaned(kind, values)
    subject, body = _template(kind)
    text = mustache.parse(body).render(shown, escape_html=False)
    return _laid_out(mustache.parse(subject).render(shown, escape_html=False), text, link=link, footer=footer)


def render_digest(items: Sequence[tuple[str, Mapping[str, str]]], *, link: str, footer: Footer) -> Rendered:
    """Several notices as one mail: the kinds and values of each."""
    lines = [summary(kind, values) for kind, values in items[:MAX_DIGEST_ITEMS]]
    shown = {"count": str(len(items)), "items": lines, "more": str(max(0, len(items) - len(lines)) or "")}
    subject, body = _template(DIGEST)
    text = mustache.parse(body).render(shown, escape_html=False)
    return _laid_out(mustache.parse(subject).render(shown, escape_html=False), text, link=link, footer=footer)


def summary(kind: str, values: Mapping[str, str]) -> str:
    """A notice in one line: its subject."""
    return mustache.parse(_template(kind)[0]).render(cleaned(kind, values), escape_html=False)


def cleaned(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    """The values as they are shown."""
    free = kinds.KINDS[kind].free
    return {name: without_links(value) if name in free else _printable(value) for name, value in values.items()}


def without_links(text: str) -> str:
    """A text in which no mail program finds a link or an address: `shop[.]example`."""
    return _LINKED.sub(lambda match: f"[{match[0]}]", _printable(text)[:FREE_CHARACTERS])


def for_slack(text: str) -> str:
    """Text in which Slack and Mattermost find no link and no mention, such as @channel."""
    return html.escape(text, quote=False).replace("@", "@\u200b")


def _printable(text: str) -> str:
    return _TIME.sub(r"\1 \2 UTC", _UNPRINTABLE.sub(" ", text).strip()[:VALUE_CHARACTERS])


def _laid_out(subject: str, text: str, *, link: str, footer: Footer) -> Rendered:
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    shown = {"subject": subject, "link": link, **msgspec.structs.asdict(footer)}
    plain = mustache.parse(_source("layout.txt")).render({**shown, "body": text.strip()}, escape_html=False)
    marked_up = mustache.parse(_source("layout.html")).render({**shown, "paragraphs": paragraphs}, escape_html=True)
    return Rendered(subject, plain, marked_up)


def _template(kind: str) -> tuple[str, str]:
    """The subject and the body of a template."""
    subject, _, body = _source(f"{kind}.txt").partition("\n\n")
    return subject.removeprefix(_SUBJECT), body


@functools.cache
def _source(name: str) -> str:
    return resources.files(__package__).joinpath("texts", name).read_text(encoding="utf-8")
