"""The words of the submission listener: every error has a reply, and what is temporary is never a 5xx."""

import re

import pytest

from postroad import errors
from postroad.protocol.smtp import server_replies, values
from postroad.submission import session

REQUEST_ID = "req_" + "0" * 28
TEMPORARY = {408, 429, 500, 503}


def kinds(base: type[errors.PostroadError] = errors.PostroadError) -> list[type[errors.PostroadError]]:
    """Every class of `errors.py`."""
    own = [each for each in base.__subclasses__() if each.__module__ == errors.__name__]
    return [kind for each in own for kind in (each, *kinds(each))]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_a_refusal_is_the_reply_of_its_class_with_code_word_sentence_and_request_id(
    kind: type[errors.PostroadError],
) -> None:
    arguments = {"allowed": ("GET",)} if kind is errors.MethodNotAllowed else {}
    reply = session.refusal(kind("no such luck", **arguments), request_id=REQUEST_ID)  # type: ignore[arg-type]
    assert session.status_of(reply) == kind.smtp_reply
    assert reply.text.startswith(f"{kind.code}: no such luck")
    assert reply.text.endswith(f"({REQUEST_ID})")
    assert re.fullmatch(r"[45]\d\d", str(reply.code))
    # RFC 3463 section 2: both codes say the same about whether to try again.
    assert reply.enhanced[0] == str(reply.code)[0]
    # Credits may be added while a relay keeps the message; over HTTP the caller decides.
    waits = (errors.IdempotencyInProgress, errors.InsufficientCredits)
    assert (reply.code < 500) == (kind.status in TEMPORARY or kind in waits)


def test_a_verb_may_have_a_better_reply_than_the_error() -> None:
    reply = session.refusal(errors.Unauthorized("log in"), request_id=REQUEST_ID, smtp_reply="530 5.7.0")
    assert (reply.code, reply.enhanced) == (530, "5.7.0")


def test_a_refusal_says_how_long_to_wait() -> None:
    reply = session.refusal(errors.RateLimited("too fast", retry_after=7), request_id=REQUEST_ID)
    assert reply.text == f"rate_limited: too fast; Retry-After: 7 ({REQUEST_ID})"


def test_a_long_sentence_in_any_script_is_a_well_formed_reply() -> None:
    sentence = "the domain bücher.example is not yours\r\n250 2.0.0 queued " * 40
    octets = server_replies.encode(session.refusal(errors.Forbidden(sentence), request_id=REQUEST_ID))
    lines = octets.split(b"\r\n")
    assert lines.pop() == b""
    assert len(lines) > 1
    assert all(re.fullmatch(rb"550[- ]5\.7\.1 [ -~]+", line) and len(line) <= 510 for line in lines)
    assert all(line[3:4] == b"-" for line in lines[:-1])
    assert lines[-1][3:4] == b" "
    assert REQUEST_ID.encode() in lines[-1]


def test_the_protocols_own_refusals_have_code_words_too() -> None:
    assert session.error_of(values.Reply(552, "large", "5.3.4")).code == "payload_too_large"
    assert session.error_of(values.Reply(550, "bare", "5.6.0")).code == "invalid_request"


@pytest.mark.parametrize(
    "is_secure, is_utf8, protocol",
    [(False, False, "ESMTPA"), (True, False, "ESMTPSA"), (False, True, "UTF8SMTPA"), (True, True, "UTF8SMTPSA")],
)
def test_a_message_shows_how_it_was_submitted(*, is_secure: bool, is_utf8: bool, protocol: str) -> None:
    assert session.protocol_of(is_secure=is_secure, is_utf8=is_utf8) == protocol


@pytest.mark.parametrize("reply", [server_replies.NO_ROOM, values.Reply(451, "Too many large messages", "4.3.2")])
def test_a_content_for_which_there_is_no_room_is_a_temporary_failure(reply: values.Reply) -> None:
    error = session.error_of(reply)
    assert (type(error), error.retry_after) == (errors.TemporaryFailure, 60)
    assert session.is_about_content(reply)
    assert not session.is_about_content(server_replies.TOO_MANY_RECIPIENTS)
