"""Exchanges that gave no response, in words that are the same for both clients."""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass
from typing import Final

from postroad_client import errors

MAX_QUOTED_CHARACTERS: Final = 200


@dataclass(frozen=True)
class Failure:
    """There was no response, and why."""

    code: str
    reason: str


def unreached(where: str, error: Exception) -> Failure:
    """No connection was made."""
    return Failure(errors.CONNECTION_FAILED, f"could not connect to {where}: {cause(error)}")


def lost(where: str, error: Exception) -> Failure:
    """The connection broke before the response was complete."""
    return Failure(errors.CONNECTION_FAILED, f"lost the connection to {where}: {cause(error)}")


def too_slow(where: str, seconds: float) -> Failure:
    """The time of the attempt was over."""
    return Failure(errors.TIMED_OUT, f"no complete response from {where} within {seconds:.3g} s")


def not_http(where: str, problem: str) -> Failure:
    """Something else speaks there."""
    return Failure(errors.UNEXPECTED_RESPONSE, f"what {where} sends is not HTTP: {quote(problem)}")


def quote(text: str) -> str:
    """The beginning of what somebody else has written, on one line, and safe to print."""
    line = " ".join(text.split())[:MAX_QUOTED_CHARACTERS]
    return "".join(character if character.isprintable() else "?" for character in line)


def cause(error: Exception) -> str:
    """Why something failed: `connection refused`."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    text = str(error) or type(error).__name__
    # Errors of a lookup and of TLS have numbers of their own.
    if isinstance(error, (socket.gaierror, ssl.SSLError)):
        text = error.strerror or text
    elif isinstance(error, OSError) and error.errno:
        text = os.strerror(error.errno)
    return quote(text[:1].lower() + text[1:])
