"""The values of the filters of a search: what each one takes, how it is written, and what is wrong with it.

A value that is checked again stays as it is, so that a query can be written back. An address is one of three:
`ada@example.org`, a domain (`@example.org`), or the beginning of addresses (`ann*`).
"""

import datetime as dt
import difflib
import functools
import re
from collections.abc import Callable, Iterable
from typing import Final

from postroad import errors
from postroad.model.bounces import failure_causes, reasons
from postroad.model.delivery import providers
from postroad.model.mail import limits, statuses
from postroad.model.units import identifiers, labels, times
from postroad.protocol.mime import address

# A recipient that was bounced without an attempt, because its address was on the suppression list.
SUPPRESSED: Final = "suppressed"
# The same, because they had left the list of the message.
UNSUBSCRIBED: Final = "unsubscribed"
# One that was deferred at least once, whatever became of it.
RETRIED: Final = "retried"
OUTCOMES: Final[tuple[str, ...]] = (*statuses.RecipientStatus, SUPPRESSED, UNSUBSCRIBED, RETRIED)
STATUSES: Final[tuple[str, ...]] = (
    *statuses.MessageStatus,
    *(outcome for outcome in OUTCOMES if outcome not in (*statuses.MessageStatus, RETRIED)),
)
CAUSES: Final[tuple[str, ...]] = (
    *reasons.Fault,
    *(name for name, reason in reasons.REASONS.items() if reason.fault),
    failure_causes.ENDED,
)
# What people call mailboxes of a provider.
_PROVIDER_WORDS: Final = {"gmail": "google", "outlook": "microsoft", "hotmail": "microsoft", "icloud": "apple"}

# No subject, tag or address contains these; PostgreSQL cannot even take some of them as a parameter.
UNSEEN: Final = re.compile(rf"(?!\s)[{address.UNSEEN}\ud800-\udfff]")
_METADATA: Final = re.compile(rf"{limits.METADATA_KEY_PATTERN}:.+", re.DOTALL)
_PREFIX: Final = re.compile(r"""[^\s@*"<>,;():][^\s*"<>,;():]*\*""")
_ID_PREFIX: Final = re.compile(rf"{identifiers.MESSAGE}[0-9a-f]{{0,27}}\*")
# Fewer digits might be a word of a subject; so many begin the ids of a few hours.
_BARE_ID_PREFIX: Final = re.compile(rf"{identifiers.MESSAGE}[0-9a-f]{{6,27}}")
_REPLY_CODE: Final = re.compile(r"[2-5][0-9]{2}", re.ASCII)
_ENHANCED_CODE: Final = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}", re.ASCII)
_LOCAL: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?:[Tt]\d{2}:\d{2}(?::\d{2})?)?", re.ASCII)
_WITHOUT_SECONDS: Final = re.compile(r"(\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2})([Zz]|[+-]\d{2}:\d{2})", re.ASCII)
_SPAN: Final = re.compile(r"(\d+)([mhdw])", re.ASCII)
_UNITS: Final = {"m": 60 * times.SECOND, "h": times.HOUR, "d": times.DAY, "w": 7 * times.DAY}


def check(name: str, value: str) -> str:
    """The value of a filter as a query keeps it; ValueError or InvalidRequest say what is wrong."""
    return _CHECKS[name](value)


def moment(text: str, *, now: int, zone: dt.tzinfo = dt.UTC) -> int:
    """The time that `after:` or `before:` names: a date (its midnight), a time or an age. Without a zone: in `zone`."""
    span = _SPAN.fullmatch(text)
    if span is not None:
        return max(0, now - int(span[1]) * _UNITS[span[2]])
    if _LOCAL.fullmatch(text):
        return times.moment_of(dt.datetime.fromisoformat(text.upper()), zone)
    return times.parse(_WITHOUT_SECONDS.sub(r"\1:00\2", text))


def metadata_entry(text: str) -> str:
    """A key of metadata and its value, `order:1042`, or InvalidRequest."""
    if _METADATA.fullmatch(text) is None or UNSEEN.search(text):
        raise errors.InvalidRequest(
            "metadata: give a key and its value, such as order:1042 (metadata.order:1042 in a search)"
        )
    return text


def is_address(text: str) -> bool:
    """Whether the text is one email address."""
    try:
        address.parse(text)
    except address.AddressError:
        return False
    return True


def is_domain(text: str) -> bool:
    """Whether the text is a domain name, and nothing else."""
    try:
        address.parse_domain(text)
    except address.AddressError:
        return False
    return True


def is_reply_code(code: str) -> bool:
    """Whether the value of `code:` is a reply code, and not an enhanced code."""
    return _REPLY_CODE.fullmatch(code) is not None


def implied_id(text: str) -> str | None:
    """The value of `id:` that a bare word stands for."""
    if identifiers.is_identifier(text, identifiers.MESSAGE):
        return text
    return f"{text}*" if _BARE_ID_PREFIX.fullmatch(text) else None


def _address(value: str) -> str:
    if value.endswith("*"):
        if _PREFIX.fullmatch(value) is None:
            raise ValueError("an asterisk stands for the rest of an address, as in ann*; a domain is written whole")
        return value.lower()
    if value.startswith("@") or ("@" not in value and "." in value):
        return f"@{address.parse_domain(value.removeprefix('@'))}"
    try:
        return address.parse(value).written_address
    except address.AddressError as problem:
        advice = "" if "@" in value else ". A domain is written @example.org, the beginning of addresses ann*"
        raise ValueError(f"{problem}{advice}") from None


def _one_of(known: Iterable[str], value: str) -> str:
    words = {str(word): word for word in known}
    if value.lower() in words:
        return words[value.lower()]
    raise ValueError(f"must be one of {', '.join(words)}{_did_you_mean(value, words)}")


def _did_you_mean(value: str, words: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(value.lower(), words, n=1)
    return f" (did you mean {nearest[0]}?)" if nearest else ""


def _cause(value: str) -> str:
    if value.lower() in CAUSES:
        return value.lower()
    advice = _did_you_mean(value, CAUSES)
    raise ValueError(f"must be one of {', '.join(reasons.Fault)}, or a reason such as mailbox_full{advice}")


def _code(value: str) -> str:
    if not is_reply_code(value) and _ENHANCED_CODE.fullmatch(value) is None:
        raise ValueError("must be a reply code like 550 or an enhanced code like 5.1.1")
    return value


def _tag(value: str) -> str:
    return labels.check_label("tag", value, limit=limits.TAG_CHARACTERS)


def _provider(value: str) -> str:
    if value.startswith(providers.UPSTREAM_PREFIX):
        return value
    word = value.lower()
    return _one_of(providers.PROVIDERS, _PROVIDER_WORDS.get(word, word))


def _id(value: str) -> str:
    if not identifiers.is_identifier(value, identifiers.MESSAGE) and _ID_PREFIX.fullmatch(value) is None:
        raise ValueError(
            "is not a message id; message ids are em_ and 28 hexadecimal digits, and the beginning of one ends with *"
        )
    return value


def _moment(value: str) -> str:
    try:
        moment(value, now=0)
    except ValueError:
        raise ValueError(
            "must be a date like 2026-11-01, a time like 2026-11-01T10:00, or an age like 30m, 2h, 3d or 1w"
        ) from None
    return value


_CHECKS: Final[dict[str, Callable[[str], str]]] = {
    "to": _address,
    "from": _address,
    "status": functools.partial(_one_of, STATUSES),
    "outcome": functools.partial(_one_of, OUTCOMES),
    "cause": _cause,
    "code": _code,
    "provider": _provider,
    "tag": _tag,
    "metadata": metadata_entry,
    "source": functools.partial(_one_of, statuses.Source),
    "mode": functools.partial(_one_of, statuses.Mode),
    "id": _id,
    "after": _moment,
    "before": _moment,
}
