"""Replies of the submission listener: errors as SMTP replies, and the protocol name in `Received`.

A refusal reads `550 5.7.1 forbidden: what is wrong (req_…)`: the codes of its error class, its error code, its message
and the request id, which is in the log too.
"""

from collections.abc import Mapping
from typing import Final

from postroad import errors
from postroad.protocol.smtp import values

# The metrics label for a login that was not refused.
ACCEPTED: Final = "accepted"
# Content refused by the protocol layer: too large, with a bare CR, or while there is no room or time for it. Its other
# refusals are about addresses.
_TOO_LARGE: Final = 552
_BARE_CR: Final = 550
_BUSY: Final = frozenset({"4.3.1", "4.3.2"})
# Long enough for other messages to be accepted.
_BUSY_RETRY_SECONDS: Final = 60
# RFC 3848 section 3 and RFC 6531 section 4.3; all senders are authenticated.
_PROTOCOLS: Final[Mapping[tuple[bool, bool], str]] = {
    (False, False): "ESMTPA",
    (True, False): "ESMTPSA",
    (False, True): "UTF8SMTPA",
    (True, True): "UTF8SMTPSA",
}


def refusal(error: errors.PostroadError, *, request_id: str, smtp_reply: str | None = None) -> values.Reply:
    """The reply for an error; `smtp_reply` replaces the codes of its class."""
    code, _, enhanced = (smtp_reply or error.smtp_reply).partition(" ")
    # Error messages refer to `Retry-After`, a header of HTTP.
    wait = "" if error.retry_after is None else f"; Retry-After: {error.retry_after}"
    return values.Reply(int(code), f"{error.code}: {error.message}{wait} ({request_id})", enhanced)


def status_of(reply: values.Reply) -> str:
    """The codes of a reply, in the form of `PostroadError.smtp_reply`."""
    return f"{reply.code} {reply.enhanced}"


def error_of(reply: values.Reply) -> errors.PostroadError:
    """The error for a refusal by the protocol layer."""
    if reply.enhanced in _BUSY:
        return errors.TemporaryFailure(reply.text, retry_after=_BUSY_RETRY_SECONDS)
    kind = errors.PayloadTooLarge if reply.code == _TOO_LARGE else errors.InvalidRequest
    return kind(reply.text)


def is_about_content(reply: values.Reply) -> bool:
    """Whether a refusal by the protocol layer is about the content, not an address."""
    return reply.code in (_TOO_LARGE, _BARE_CR) or reply.enhanced in _BUSY


def protocol_of(*, is_secure: bool, is_utf8: bool) -> str:
    """The `with` protocol of `Received`."""
    return _PROTOCOLS[is_secure, is_utf8]
