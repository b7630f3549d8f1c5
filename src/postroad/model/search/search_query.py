"""The query language of the search box: `to:@gmail.com status:bounced after:2d -tag:test invoice OR receipt`.

A query is a list of terms separated by spaces, and all of them have to match. A term is `name:value` or a bare word: an
address means `to:`, a message id or the beginning of one `id:`, and any other word has to be in the subject, ignoring
the case of ASCII letters. `-` before a term excludes what it finds. `OR` joins the terms beside it and binds tighter
than the spaces, as in Gmail: `a b OR c` finds what has a, and b or c. Text in double quotes is taken literally; a
double quote in it is written twice. `format` writes a query back, so that a page can remove single terms. Relative
times stay relative, so that a link to "the last two hours" stays one.
"""

import contextlib
import difflib
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.model.search import search_values

# Longer than a typed query, and short enough for a URL.
MAX_CHARACTERS: Final = 500
# Each is searched in every subject that is examined. A pasted subject in quotes counts as one.
MAX_WORDS: Final = 5
# Each is checked for every message that is examined.
MAX_TERMS: Final = 15
MAX_ALTERNATIVES: Final = 5

# Filter, what it finds, and an example: the help beside the search box.
HELP: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "to:",
        "messages to an address, a domain (@), or addresses with a prefix (ann*); an address alone works too",
        "to:@gmail.com",
    ),
    ("from:", "messages from an address, a domain (@), or addresses with a prefix (ann*)", "from:ann*"),
    (
        "status:",
        (
            "the message is queued, delivered, partial or failed, or one of its recipients is deferred, bounced, "
            "suppressed, unsubscribed, expired or canceled"
        ),
        "status:bounced",
    ),
    (
        "outcome:",
        "a recipient has this status; failed means that the retries ended, retried that it was deferred at least once",
        "outcome:failed",
    ),
    (
        "cause:",
        (
            "why a recipient was not delivered: address, content, policy, reputation, rate, network or ours, or a "
            "reason such as mailbox_full"
        ),
        "cause:reputation",
    ),
    ("code:", "the reply code or enhanced status code of a recipient's last attempt", "code:5.1.1"),
    ("provider:", "where the last attempt went: google, microsoft, yahoo, apple or others", "provider:google"),
    ("tag:", "messages with exactly this tag", 'tag:"black friday"'),
    ("metadata.order:", "messages with exactly this value of a metadata key, here order", "metadata.order:1042"),
    ("source:", "how the message was submitted: api, smtp or test", "source:smtp"),
    ("mode:", "test: only test messages, which other searches leave out", "mode:test"),
    ("id:", "the message with this id, or those whose id begins so (*); the id alone works too", "id:em_0654c3*"),
    ("after:", "accepted at this time or later: a date, a time or an age", "after:2d"),
    ("before:", "accepted before this time", "before:2026-11-02T10:00Z"),
    ("words", "words in the subject; a phrase in double quotes", 'invoice "second reminder"'),
    ("-", "excludes messages that the term finds", "-tag:newsletter -reminder"),
    ("OR", "messages that match either term; up to five terms", "status:bounced OR status:expired"),
)

# After `metadata.` comes a key, in which case matters.
_NAME: Final = re.compile(r"([A-Za-z_]+)(?:(?i:(?<=metadata))\.([A-Za-z0-9_-]+))?:")
_QUOTED: Final = re.compile(r'"((?:[^"]|"")*)"(?!")')
_BARE: Final = re.compile(r"\S+")
_BLANKS: Final = re.compile(r"\s*")
# A lone hyphen and `--` are words.
_NEGATION: Final = re.compile(r"-(?=[^\s-])")
_OR: Final = re.compile(r"OR(?!\S)")
_TO_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
# A message has several of these, and a reply has two codes; of the others only one can be true.
_REPEATABLE: Final = frozenset({"tag", "metadata", "code"})
# These bound the whole search.
_BOUNDS: Final = frozenset({"after", "before", "mode"})

moment = search_values.moment
metadata_entry = search_values.metadata_entry


class QueryError(errors.InvalidRequest):
    """The text is not a valid query; the error is at characters `start` to `end`."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(f"search: {message}")
        self.detail = message
        self.start = start
        self.end = end


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: a filter and its value; a word of the subject has no name."""

    name: str | None
    value: str
    is_negated: bool = False


# One of the terms has to match.
Clause = tuple[Term, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to search for; empty fields match everything. `after` and `before` are as written: see `moment`.

    `more` are the clauses that are not one plain term: alternatives, exclusions, and filters that are there again.
    """

    to: str | None = None
    sender: str | None = None
    status: str | None = None
    outcome: str | None = None
    cause: str | None = None
    code: str | None = None
    provider: str | None = None
    tag: str | None = None
    metadata: str | None = None
    source: str | None = None
    mode: str | None = None
    id: str | None = None
    after: str | None = None
    before: str | None = None
    words: tuple[str, ...] = ()
    more: tuple[Clause, ...] = ()

    def clauses(self) -> tuple[Clause, ...]:
        """All conditions, each of which has to match, except those of `after`, `before` and `mode`."""
        named = ((name, getattr(self, field)) for name, field in _FIELDS.items() if name not in _BOUNDS)
        plain = [(Term(name, value),) for name, value in named if value is not None]
        return (*plain, *((Term(None, word),) for word in self.words), *self.more)


# `from` is a keyword in Python.
_FIELDS: Final = {
    ("from" if field.name == "sender" else field.name): field.name
    for field in fields(Query)
    if field.name not in ("words", "more")
}


class _Written(msgspec.Struct, frozen=True):
    """A term as it was written, and its position; a bare word has no name."""

    name: str | None
    value: str
    is_negated: bool
    is_quoted: bool
    # `OR` stands before it.
    is_alternative: bool
    start: int
    end: int

    def wrong(self, message: str) -> QueryError:
        return QueryError(message, self.start, self.end)


def parse(text: str) -> Query:
    """The query, or a QueryError that says what to change."""
    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"at most {MAX_CHARACTERS} characters", MAX_CHARACTERS, len(text))
    unseen = search_values.UNSEEN.search(text)
    if unseen is not None:
        raise QueryError(f"remove the invisible character U+{ord(unseen[0]):04X}", unseen.start(), unseen.end())
    given: dict[str, str] = {}
    words: dict[str, None] = {}
    more: dict[Clause, None] = {}
    for written in _clauses(text):
        clause = tuple(dict.fromkeys(map(_checked, written)))
        first, last = clause[0], written[-1]
        if len(clause) > 1 or first.is_negated:
            more[clause] = None
            _refuse_bounds(written)
        elif first.name is None:
            words[first.value] = None
        elif _FIELDS[first.name] not in given:
            given[_FIELDS[first.name]] = first.value
        elif first.name in _REPEATABLE:
            if given[_FIELDS[first.name]] != first.value:
                more[clause] = None
        else:
            advice = "; remove one" if first.name in _BOUNDS else "; remove one, or write OR between them"
            raise last.wrong(f"{first.name}: is given twice{advice}")
        _check_size(len(given), words, more, last)
    return Query(**given, words=tuple(words), more=tuple(more))


def format(query: Query) -> str:  # noqa: A001 - the counterpart of `parse`, and always called by its module's name
    """The text that `parse` turns into the same query."""
    named = [(name, getattr(query, field)) for name, field in _FIELDS.items()]
    terms = [_written_term(Term(name, value)) for name, value in named if value is not None]
    words = [_written_word(word) for word in query.words]
    return " ".join([*terms, *words, *(" OR ".join(map(_written_term, clause)) for clause in query.more)])


def suggestions(query: Query) -> Iterator[Query]:
    """The same search with a word as the recipients' domain, and as the beginning of their addresses."""
    if query.to is not None:
        return
    for word in query.words:
        if "." in word and search_values.is_domain(word):
            yield _to(query, word, word)
            break
    for word in query.words:
        with contextlib.suppress(ValueError, errors.InvalidRequest):
            yield _to(query, word, f"{word}*")
            break


def _to(query: Query, word: str, value: str) -> Query:
    rest = tuple(kept for kept in query.words if kept != word)
    return replace(query, to=search_values.check("to", value), words=rest)


def broader(query: Query) -> Iterator[tuple[str, Query]]:
    """Each term as it is written, and the search without it; the two bounds of a range are one."""
    for name, field in _FIELDS.items():
        value = getattr(query, field)
        if value is not None and name not in ("after", "before"):
            without: dict[str, Any] = {field: None}
            yield _written_term(Term(name, value)), replace(query, **without)
    if query.after is not None or query.before is not None:
        yield format(Query(after=query.after, before=query.before)), replace(query, after=None, before=None)
    for word in query.words:
        yield _written_word(word), replace(query, words=tuple(kept for kept in query.words if kept != word))
    for clause in query.more:
        yield format(Query(more=(clause,))), replace(query, more=tuple(kept for kept in query.more if kept != clause))


def _clauses(text: str) -> Iterator[tuple[_Written, ...]]:
    clause: list[_Written] = []
    for term in _terms(text):
        if clause and not term.is_alternative:
            yield tuple(clause)
            clause = []
        clause.append(term)
        if len(clause) > MAX_ALTERNATIVES:
            raise term.wrong(f"OR joins at most {MAX_ALTERNATIVES} terms")
    if clause:
        yield tuple(clause)


def _terms(text: str) -> Iterator[_Written]:
    start = _skip_blanks(text, 0)
    alternative: re.Match[str] | None = None
    is_first = True
    while start < len(text):
        found = _OR.match(text, start)
        if found is not None:
            if is_first or alternative is not None:
                raise _lonely(found)
            alternative = found
            start = _skip_blanks(text, found.end())
            continue
        term = _term(text, start, is_alternative=alternative is not None)
        yield term
        alternative, is_first = None, False
        start = _skip_blanks(text, term.end)
    if alternative is not None:
        raise _lonely(alternative)


def _lonely(found: re.Match[str]) -> QueryError:
    message = "OR needs a term before and after it; to search the subject for it, write it in lower case"
    return QueryError(message, found.start(), found.end())


def _term(text: str, start: int, *, is_alternative: bool) -> _Written:
    negation = _NEGATION.match(text, start)
    at = negation.end() if negation else start
    named = _NAME.match(text, at)
    at = named.end() if named else at
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
    return _Written(name, value, negation is not None, is_quoted, is_alternative, start, end)


def _skip_blanks(text: str, start: int) -> int:
    blanks = _BLANKS.match(text, start)
    return blanks.end() if blanks else start


def _empty(name: str | None) -> str:
    if name is None:
        return "the double quotes are empty"
    return f"{name}: needs a value" if name in _FIELDS else _unknown(name)


def _checked(written: _Written) -> Term:
    name, value = (written.name, written.value) if written.name or written.is_quoted else _implied(written.value)
    if name is None:
        return Term(None, value.translate(_TO_LOWER), written.is_negated)
    if name not in _FIELDS:
        raise written.wrong(_unknown(name))
    try:
        return Term(name, search_values.check(name, value), written.is_negated)
    except errors.InvalidRequest as problem:
        raise written.wrong(str(problem)) from None
    except ValueError as problem:
        raise written.wrong(f"{name}: {problem}") from None


def _implied(word: str) -> tuple[str | None, str]:
    """The filter that a bare word implies, and its value."""
    message_id = search_values.implied_id(word)
    if message_id is not None:
        return "id", message_id
    return ("to" if search_values.is_address(word) else None), word


def _refuse_bounds(written: tuple[_Written, ...]) -> None:
    for term in written:
        if term.name in _BOUNDS:
            raise term.wrong(f"{term.name}: cannot be excluded with - or joined with OR")


def _check_size(filters: int, words: dict[str, None], more: dict[Clause, None], last: _Written) -> None:
    others = [term for clause in more for term in clause]
    if len(words) + sum(term.name is None for term in others) > MAX_WORDS:
        raise last.wrong(f"at most {MAX_WORDS} words; a phrase in double quotes counts as one")
    if filters + len(words) + len(others) > MAX_TERMS:
        raise last.wrong(f"at most {MAX_TERMS} terms")


def _unknown(name: str) -> str:
    nearest = difflib.get_close_matches(name, _FIELDS, n=1)
    known = ", ".join(f"{field}:" for field in _FIELDS)
    advice = f"did you mean {nearest[0]}:?" if nearest else f"use one of {known}"
    return f"unknown filter {name}: ({advice}). To search the subject for it, put it in double quotes"


def _written_term(term: Term) -> str:
    sign, name, value = "-" if term.is_negated else "", term.name, term.value
    if name is None:
        return f"{sign}{_written_word(value)}"
    if name == "metadata":
        key, _, value = value.partition(":")
        name = f"metadata.{key}"
    return f"{sign}{name}:{_written(value)}"


def _written(value: str) -> str:
    return value if _BARE.fullmatch(value) and not value.startswith('"') else _quoted(value)


def _written_word(word: str) -> str:
    """A word that would have another meaning without quotes gets them."""
    means_more = _NAME.match(word) or word.startswith("-") or _implied(word)[0] is not None
    return _quoted(word) if means_more else _written(word)


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
