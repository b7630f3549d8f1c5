"""The query language of the search box: `to:ada@example.org status:failed after:2d invoice`.

A query is a list of terms separated by spaces, and all of them have to match. A term is `name:value` or a bare word: an
address means `to:`, a message id `id:`, and any other word has to be in the subject, ignoring the case of ASCII
letters. Text in double quotes is taken literally; a double quote in it is written twice. `format` writes a query back,
so that a page can remove single terms. Relative times stay relative, so that a link to "the last two hours" stays one.
"""

import difflib
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

from postroad import errors
from postroad.model import identifiers, labels, limits, mail, times
from postroad.protocol import address
from postroad.protocol.mime import header_text

# Longer than a typed query, and short enough for a URL.
MAX_CHARACTERS: Final = 500
# Each is searched in every subject that is examined. A pasted subject in quotes counts as one.
MAX_WORDS: Final = 5

# Filter, what it finds, and an example: the help beside the search box.
HELP: Final[tuple[tuple[str, str, str], ...]] = (
    ("to:", "messages to this address; the address alone works too", "to:ada@example.org"),
    ("from:", "messages from this address", "from:shop@example.com"),
    ("status:", "queued, delivered, partial or failed", "status:failed"),
    ("tag:", "messages with exactly this tag", 'tag:"black friday"'),
    ("metadata.order:", "messages with exactly this value of the metadata key, here order", "metadata.order:1042"),
    ("source:", "how the message was submitted: api, smtp or test", "source:smtp"),
    ("mode:", "test: test messages, which other searches leave out", "mode:test"),
    ("id:", "the message with this id; the id alone works too", "id:em_0654c3a1f2b4c80123456789abcd"),
    ("after:", "accepted at this time or later: a date, a time or an age", "after:2d"),
    ("before:", "accepted before this time", "before:2026-11-02T10:00Z"),
    ("words", "words in the subject; a phrase in double quotes", 'invoice "second reminder"'),
)

# After `metadata.` comes a key, in which case matters.
_NAME: Final = re.compile(r"([A-Za-z_]+)(?:(?i:(?<=metadata))\.([A-Za-z0-9_-]+))?:")
_METADATA: Final = re.compile(rf"{limits.METADATA_KEY_PATTERN}:.+", re.DOTALL)
_QUOTED: Final = re.compile(r'"((?:[^"]|"")*)"(?!")')
_BARE: Final = re.compile(r"\S+")
_BLANKS: Final = re.compile(r"\s*")
# No subject, tag or address contains these; PostgreSQL cannot even take some of them as a parameter.
_UNSEEN: Final = re.compile(rf"(?!\s)[{header_text.UNSEEN}\ud800-\udfff]")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_WITHOUT_SECONDS: Final = re.compile(r"(\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2})([Zz]|[+-]\d{2}:\d{2})", re.ASCII)
_SPAN: Final = re.compile(r"(\d+)([mhdw])", re.ASCII)
_UNITS: Final = {"m": 60 * times.SECOND, "h": times.HOUR, "d": times.DAY, "w": 7 * times.DAY}
_TO_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class QueryError(errors.InvalidRequest):
    """The text is not a valid query; the error is at characters `start` to `end`."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(f"search: {message}")
        self.start = start
        self.end = end


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to search for; empty fields match everything. `after` and `before` are as written: see `moment`."""

    to: str | None = None
    sender: str | None = None
    status: mail.MessageStatus | None = None
    tag: str | None = None
    metadata: str | None = None
    source: mail.Source | None = None
    mode: mail.Mode | None = None
    id: str | None = None
    after: str | None = None
    before: str | None = None
    words: tuple[str, ...] = ()


# `from` is a keyword in Python.
_FIELDS: Final = {
    ("from" if field.name == "sender" else field.name): field.name for field in fields(Query) if field.name != "words"
}


@dataclass(frozen=True, slots=True)
class _Term:
    """A term and its position; a bare word has no name."""

    name: str | None
    value: str
    is_quoted: bool
    start: int
    end: int

    def wrong(self, message: str) -> QueryError:
        return QueryError(message, self.start, self.end)


def parse(text: str) -> Query:
    """The query, or a QueryError that says what to change."""
    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"at most {MAX_CHARACTERS} characters", MAX_CHARACTERS, len(text))
    unseen = _UNSEEN.search(text)
    if unseen is not None:
        raise QueryError(f"remove the invisible character U+{ord(unseen[0]):04X}", unseen.start(), unseen.end())
    given: dict[str, str] = {}
    words: dict[str, None] = {}
    for term in _terms(text):
        name = term.name or _implied_field(term)
        if name is None:
            words[term.value.translate(_TO_LOWER)] = None
            if len(words) > MAX_WORDS:
                raise term.wrong(f"at most {MAX_WORDS} words; a phrase in double quotes counts as one")
        elif name not in _FIELDS:
            raise term.wrong(_unknown(name))
        elif _FIELDS[name] in given:
            raise term.wrong(f"{name}: is given twice; remove one")
        else:
            given[_FIELDS[name]] = _value(name, term)
    return Query(**given, words=tuple(words))  # type: ignore[arg-type]


def format(query: Query) -> str:  # noqa: A001 - the counterpart of `parse`, and always called by its module's name
    """The text that `parse` turns into the same query."""
    named = [(name, getattr(query, field)) for name, field in _FIELDS.items()]
    terms = [_written_term(name, value) for name, value in named if value is not None]
    return " ".join([*terms, *map(_written_word, query.words)])


def moment(text: str, *, now: int) -> int:
    """The time that `after:` or `before:` names: a date (its midnight, UTC), a time or an age."""
    span = _SPAN.fullmatch(text)
    if span is not None:
        return max(0, now - int(span[1]) * _UNITS[span[2]])
    if _DAY.fullmatch(text):
        return times.parse(f"{text}T00:00:00Z")
    return times.parse(_WITHOUT_SECONDS.sub(r"\1:00\2", text))


def metadata_entry(text: str) -> str:
    """A key of metadata and its value, `order:1042`, or InvalidRequest."""
    if _METADATA.fullmatch(text) is None or _UNSEEN.search(text):
        raise errors.InvalidRequest(
            "metadata: give a key and its value, such as order:1042 (metadata.order:1042 in a search)"
        )
    return text


def _terms(text: str) -> Iterator[_Term]:
    start = _skip_blanks(text, 0)
    while start < len(text):
        named = _NAME.match(text, start)
        at = named.end() if named else start
        is_quoted = text.startswith('"', at)
        found = (_QUOTED if is_quoted else _BARE).match(text, at)
        if is_quoted and found is None:
            raise QueryError("this double quote is not closed", at, len(text))
        name = named[1].lower() if named else None
        end = found.end() if found else at
        value = "" if found is None else found[1].replace('""', '"') if is_quoted else found[0]
        if not value.strip():
            raise QueryError(_empty(name), start, end)
        if is_quoted and _BARE.match(text, end):
            raise QueryError("a space must follow the closing double quote", start, end + 1)
        if named and named[2]:
            value = f"{named[2]}:{value}"
        yield _Term(name, value, is_quoted, start, end)
        start = _skip_blanks(text, end)


def _skip_blanks(text: str, start: int) -> int:
    blanks = _BLANKS.match(text, start)
    return blanks.end() if blanks else start


def _empty(name: str | None) -> str:
    if name is None:
        return "the double quotes are empty"
    return f"{name}: needs a value" if name in _FIELDS else _unknown(name)


def _implied_field(term: _Term) -> str | None:
    """The filter that a bare word implies."""
    if term.is_quoted:
        return None
    if identifiers.is_identifier(term.value, identifiers.MESSAGE):
        return "id"
    return "to" if _is_address(term.value) else None


def _is_address(text: str) -> bool:
    try:
        address.parse(text)
    except address.AddressError:
        return False
    return True


def _unknown(name: str) -> str:
    nearest = difflib.get_close_matches(name, _FIELDS, n=1)
    known = ", ".join(f"{field}:" for field in _FIELDS)
    advice = f"did you mean {nearest[0]}:?" if nearest else f"use one of {known}"
    return f"unknown filter {name}: ({advice}). To search the subject for it, put it in double quotes"


def _value(name: str, term: _Term) -> str:
    try:
        return _checked(name, term.value)
    except (ValueError, errors.InvalidRequest) as problem:
        raise term.wrong(str(problem) if isinstance(problem, errors.InvalidRequest) else f"{name}: {problem}") from None


def _checked(name: str, value: str) -> str:
    """The value as the query keeps it; ValueError or InvalidRequest say what is wrong."""
    match name:
        case "to" | "from":
            return address.parse(value).written_address
        case "status":
            return _one_of(mail.MessageStatus, value)
        case "source":
            return _one_of(mail.Source, value)
        case "mode":
            return _one_of(mail.Mode, value)
        case "tag":
            return labels.check(name, value, limit=limits.TAG_CHARACTERS)
        case "metadata":
            return metadata_entry(value)
        case "id":
            return _checked_id(value)
        case _:
            return _checked_moment(value)


def _one_of(kind: type[mail.MessageStatus | mail.Source | mail.Mode], value: str) -> str:
    try:
        return kind(value.lower())
    except ValueError:
        raise ValueError(f"must be one of {', '.join(kind)}") from None


def _checked_id(value: str) -> str:
    if not identifiers.is_identifier(value, identifiers.MESSAGE):
        raise ValueError("is not a message id; message ids are em_ and 28 hexadecimal digits")
    return value


def _checked_moment(value: str) -> str:
    try:
        moment(value, now=0)
    except ValueError:
        raise ValueError(
            "must be a date like 2026-11-01, a time like 2026-11-01T10:00Z, or an age like 30m, 2h, 3d or 1w"
        ) from None
    return value


def _written_term(name: str, value: str) -> str:
    if name == "metadata":
        key, _, value = value.partition(":")
        name = f"metadata.{key}"
    return f"{name}:{_written(value)}"


def _written(value: str) -> str:
    return value if _BARE.fullmatch(value) and not value.startswith('"') else _quoted(value)


def _written_word(word: str) -> str:
    """A word that would have another meaning without quotes gets them."""
    means_more = _NAME.match(word) or _is_address(word) or identifiers.is_identifier(word, identifiers.MESSAGE)
    return _quoted(word) if means_more else _written(word)


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
