"""When to send and when to stop, as parameters of MAIL: FUTURERELEASE (RFC 4865) and DELIVERBY (RFC 2852).

`HOLDFOR` and `HOLDUNTIL` are `send_at` over HTTP, and `BY` with the mode `R` is `expires_in`, which counts from the
release of a message that is held. The mode `N` asks only for a notice of a delay, which webhooks give.
"""

import re
from typing import Final

import msgspec

from postroad import errors
from postroad.model.mail import limits, send_request
from postroad.model.units import times
from postroad.protocol.smtp import server_commands

# RFC 5321 section 4.2.2: the value of a parameter.
BAD_VALUE: Final = "501 5.5.4"
# RFC 2852 section 4: a 55z reply to a time below the minimum.
TOO_SHORT: Final = "555 5.5.4"

_BY: Final = re.compile(r"([+-]?[0-9]+);([NR])T?", re.IGNORECASE | re.ASCII)


class MailOptions(msgspec.Struct, frozen=True):
    """The options of a transaction. `hold_seconds` count from the end of the message."""

    hold_seconds: int | None = None
    hold_until: int | None = None
    expires_in: int | None = None

    def send_at(self, now: int) -> int | None:
        """When to send a message that is complete now."""
        return self.hold_until if self.hold_seconds is None else now + self.hold_seconds * times.SECOND


class BadOption(Exception):
    """A value that cannot be accepted; `smtp_reply` has the codes."""

    def __init__(self, message: str, *, smtp_reply: str = BAD_VALUE) -> None:
        super().__init__(message)
        self.smtp_reply = smtp_reply


NONE: Final = MailOptions()


def keywords(now: int) -> list[str]:
    """The EHLO keywords with their limits."""
    latest = times.to_wire(now + limits.SEND_AT_DAYS * times.DAY)
    # Without milliseconds.
    return [
        f"DELIVERBY {limits.MIN_EXPIRES_IN_SECONDS}",
        f"FUTURERELEASE {limits.SEND_AT_DAYS * 86_400} {latest[:19]}Z",
    ]


def parse(parameters: server_commands.Parameters, *, now: int) -> MailOptions:
    if not parameters.keys() & server_commands.TIME_PARAMETERS:
        return NONE
    if "HOLDFOR" in parameters and "HOLDUNTIL" in parameters:
        raise BadOption("HOLDFOR, HOLDUNTIL: give one of them")
    return MailOptions(
        _hold_seconds(parameters.get("HOLDFOR")),
        _hold_until(parameters.get("HOLDUNTIL"), now=now),
        _expires_in(parameters.get("BY")),
    )


def _hold_seconds(text: str | None) -> int | None:
    if text is None:
        return None
    if int(text) > limits.SEND_AT_DAYS * 86_400:
        raise BadOption(f"HOLDFOR: {text} seconds; at most {limits.SEND_AT_DAYS * 86_400} ({limits.SEND_AT_DAYS} days)")
    return int(text)


def _hold_until(text: str | None, *, now: int) -> int | None:
    if text is None:
        return None
    try:
        send_at = send_request.parse_send_at(text)
        send_request.check_send_at(send_at, now=now)
    except errors.InvalidRequest as problem:
        raise BadOption(problem.message.replace("send_at", "HOLDUNTIL", 1)) from None
    return send_at


def _expires_in(text: str | None) -> int | None:
    found = None if text is None else _BY.fullmatch(text)
    if found is None or found[2].upper() == "N":
        return None
    seconds = int(found[1])
    if seconds <= 0:
        raise BadOption("BY: the time must be positive with the mode R")
    if seconds < limits.MIN_EXPIRES_IN_SECONDS:
        raise BadOption(f"BY: {seconds} seconds; at least {limits.MIN_EXPIRES_IN_SECONDS}", smtp_reply=TOO_SHORT)
    return min(seconds, limits.MAX_EXPIRES_IN_SECONDS)
