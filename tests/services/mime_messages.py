"""Finished messages for tests, as a client would hand them in over SMTP."""

import email
import email.policy
from email.message import EmailMessage

from postroad.model.mail import statuses

TRACE = "by mx.example.com with ESMTPSA id req_1; Fri, 15 Jan 2027 08:00:00 +0000"
FROM = "From: Shop <shop@example.com>"
TO = "To: Ada <ada@example.org>"
SUBJECT = "Subject: Hello"


def raw(
    *fields: str,
    body: str = "Hi\r\n",
    sender: str = "bounces@example.com",
    to: tuple[str, ...] = ("ada@example.org",),
) -> statuses.RawMessage:
    """A message with these header lines, which may be folded."""
    content = "".join(f"{field}\r\n" for field in fields) + "\r\n" + body
    return statuses.RawMessage(sender, to, content.encode(), TRACE)


def plain(*more: str, body: str = "Hi\r\n", to: tuple[str, ...] = ("ada@example.org",)) -> statuses.RawMessage:
    """A message as it should be, with these header lines besides."""
    return raw(FROM, TO, SUBJECT, *more, body=body, to=to)


def parsed(content: bytes) -> EmailMessage:
    """The message as the standard library reads it."""
    return email.message_from_bytes(content, policy=email.policy.default)
