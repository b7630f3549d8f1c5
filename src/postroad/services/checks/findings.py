"""The result of a check: a state, what was found, and what to do about it."""

from enum import StrEnum

import msgspec


class State(StrEnum):
    """From best to worst; `skipped` does not apply to this installation or cannot be known now."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True):
    """What one check found. `advice` is empty where nothing is to be done, or where `found` says it.

    `listed` is the source address that a blocklist names, and the blocklist.
    """

    state: State
    found: str
    advice: str = ""
    listed: tuple[str, str] | None = None


def ok(found: str) -> Finding:
    """Nothing to do."""
    return Finding(State.OK, found)


def skipped(reason: str) -> Finding:
    """Not checked."""
    return Finding(State.SKIPPED, reason)


def warning(found: str, advice: str = "") -> Finding:
    """It works, and should be changed."""
    return Finding(State.WARNING, found, advice)


def error(found: str, advice: str = "") -> Finding:
    """Mail is refused, lost or not sent, or soon will be."""
    return Finding(State.ERROR, found, advice)
