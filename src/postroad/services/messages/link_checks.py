"""Problems of the links in a message, found without requesting any of them."""

import ipaddress
import re
from typing import Final
from urllib import parse

import msgspec

from postroad.model import webhook_urls
from postroad.protocol import html_usage

# What template languages leave behind, also percent-encoded.
_PLACEHOLDER: Final = re.compile(r"\{\{|\{%|\$\{|\*\||%7B%7B", re.IGNORECASE)
_RUNS: Final = frozenset({"javascript", "vbscript", "data"})
_OTHER_SCHEMES: Final = frozenset({"mailto", "tel", "sms"})
# A text that names a host, as people write one.
_SHOWN_HOST: Final = re.compile(
    r"(?:https?://)?(?:www\.)?([a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24})(?:[/?#:]\S*)?", re.IGNORECASE
)
_UNSUBSCRIBE: Final = re.compile(
    r"unsubscri|opt[-_ ]?out|preferences|abmeld|abbestell|désabonn|desabonn|darse de baja", re.IGNORECASE
)


class CheckedLink(msgspec.Struct, frozen=True):
    """A link and its problems, as sentences."""

    link: html_usage.Link
    problems: list[str]


def check(link: html_usage.Link) -> CheckedLink:
    """The problems of a link."""
    return CheckedLink(link, list(_problems(link)))


def is_unsubscribe(link: html_usage.Link) -> bool:
    """Whether a link looks like one to unsubscribe."""
    return _UNSUBSCRIBE.search(link.text) is not None or _UNSUBSCRIBE.search(link.url) is not None


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
    suffixes = webhook_urls.NON_PUBLIC_SUFFIXES
    return "." not in host or any(webhook_urls.is_below(host, suffix) for suffix in suffixes)


def _misleading(text: str, host: str) -> list[str]:
    """Text that names another host than the link: spam filters and people take it for phishing."""
    shown = _SHOWN_HOST.fullmatch(text)
    if shown is None:
        return []
    name, actual = shown[1].lower(), host.removeprefix("www.")
    if webhook_urls.is_below(actual, name) or webhook_urls.is_below(name, actual):
        return []
    return [f"The text names {name}, but the link leads to {host}. Spam filters treat this as phishing."]
