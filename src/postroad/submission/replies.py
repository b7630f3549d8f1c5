"""The words of the submission door: errors as replies, and the name of the protocol in `Received`.

A refusal reads `550 5.7.1 forbidden: what is wrong (req_…)`: the reply of its class, its code word, its sentence and
the request id, by which the log finds it.
"""

from collections.abc import Mapping
from typing import Final

from postroad import errors
from postroad.protocol.smtp import values

# What stands for the code word where nothing was refused.
ACCEPTED: Final = "accepted"
# What the protocol refuses by itself: a content that is too large, and one that is no text of lines. The rest is about
# addresses.
_TOO_LARGE: Final = 552
_NOT_TEXT: Final = 550
# RFC 3848 section 3 and RFC 6531 section 4.3; nobody sends here without AUTH.
_PROTOCOLS: Final[Mapping[tuple[bool, bool], str]] = {
    (False, False): "ESMTPA",
    (True, False): "ESMTPSA",
    (False, True): "UTF8SMTPA",
    (True, True): "UTF8SMTPSA",
}


def refusal(error: errors.PostroadError, *, request_id: str, smtp_reply: str | None = None) -> values.Reply:
    """What a client is told; `smtp_reply` where the verb has a better one than the error."""
    code, _, enhanced = (smtp_reply or error.smtp_reply).partition(" ")
    # Sentences speak of `Retry-After`, because most are read over HTTP.
    wait = "" if error.retry_after is None else f"; Retry-After: {error.retry_after}"
    return values.Reply(int(code), f"{error.code}: {error.message}{wait} ({request_id})", enhanced)


def status_of(reply: values.Reply) -> str:
    """The codes of a reply, as errors have them."""
    return f"{reply.code} {reply.enhanced}"


def error_of(reply: values.Reply) -> errors.PostroadError:
    """The error behind a reply of the protocol itself."""
    kind = errors.PayloadTooLarge if reply.code == _TOO_LARGE else errors.InvalidRequest
    return kind(reply.text)


def is_about_content(reply: values.Reply) -> bool:
    """Whether a reply of the protocol itself refuses a message, and not an address of it."""
    return reply.code in (_TOO_LARGE, _NOT_TEXT)


def protocol_of(*, is_secure: bool, is_utf8: bool) -> str:
    """How a message came, in the words of `Received`."""
    return _PROTOCOLS[is_secure, is_utf8]
