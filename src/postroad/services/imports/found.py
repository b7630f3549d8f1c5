"""What a reader finds at another service, and how its JSON is read: bounded, typed, safe to show."""

import datetime as dt
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from postroad.model.events import event_formats
from postroad.network.http import json_api
from postroad.services.imports import foreign_templates
from postroad.storage.mail import suppressions

SHOWN_CHARACTERS: Final = 200
# Far more domains, templates and webhooks than an account has. What repeats or never ends is no list.
MAX_PAGES: Final = 100
# Two million addresses, a hundred on each page.
MAX_SUPPRESSION_PAGES: Final = 20_000
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Shape = TypeVar("Shape")


class Unusable(msgspec.Struct, frozen=True):
    """Something that cannot be imported, and why."""

    name: str
    reason: str


class Template(msgspec.Struct, frozen=True):
    """A template in our syntax, and what differs from the original."""

    alias: str
    bodies: foreign_templates.Bodies
    notes: tuple[str, ...] = ()


class Suppression(msgspec.Struct, frozen=True):
    """A suppressed address. The time is None where the service does not tell."""

    email: str
    source: suppressions.Source
    reason: str
    created_at: int | None


class Webhook(msgspec.Struct, frozen=True):
    """An endpoint, the service's names of its events, and the header fields of its requests, which may be secrets."""

    url: str
    events: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()


class Reader(Protocol):
    """Reads one service. Every generator may raise `json_api.ApiError`."""

    name: str
    format: event_formats.EventFormat

    def domains(self) -> AsyncIterator[str]:
        """The names of sender domains."""

    def templates(self) -> AsyncIterator[Template | Unusable]:
        """The templates."""

    def suppressions(self) -> AsyncIterator[Sequence[Suppression]]:
        """The suppressed addresses, in pages."""

    def webhooks(self) -> AsyncIterator[Webhook]:
        """The endpoints."""


class NotRead(json_api.ApiError):
    """This cannot be read with what was given; the text says what is needed."""


def decode(body: bytes, shape: type[Shape]) -> Shape:
    """JSON of a known shape; other members are ignored."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise json_api.ApiError(f"unexpected response: {plain(str(problem))}") from None


def plain(text: str) -> str:
    """Foreign text for a terminal and a database."""
    shown = "".join(character if character.isprintable() else "?" for character in text[:SHOWN_CHARACTERS])
    return shown if len(text) <= SHOWN_CHARACTERS else f"{shown}…"


def time_of(text: str | None) -> int | None:
    """Microseconds since 1970, of the ways in which services write a time; None where it is none."""
    try:
        moment = dt.datetime.fromisoformat(text or "")
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return max(0, (moment - _EPOCH) // dt.timedelta(microseconds=1))
