"""Reading a built message with the standard library's parser, which is the reference for what we build."""

import email
import email.message
import email.policy

from postroad.protocol.mime import address, builder

MESSAGE_ID = "em_1@example.com"
DATE = 1_700_000_000_000_000
SENDER = address.parse("shop@example.com")
RECIPIENT = address.parse("user@example.org")


def message(**fields: object) -> builder.Message:
    """A message in which nothing matters but what the test names."""
    given = {
        "from_": SENDER,
        "to": [RECIPIENT],
        "subject": "s",
        "text": "t" if not {"html", "attachments"} & fields.keys() else None,
        "message_id": MESSAGE_ID,
        "date": DATE,
    }
    return builder.Message(**(given | fields))  # type: ignore[arg-type]


def parse(raw: bytes) -> email.message.EmailMessage:
    """The message as the reference sees it, after the rules that hold for the bytes of every message."""
    assert raw.endswith(b"\r\n")
    assert b"\0" not in raw
    lines = raw.split(b"\r\n")
    assert max(map(len, lines)) <= 998
    assert not any(b"\r" in line or b"\n" in line for line in lines)
    head = raw.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert all(line.strip() for line in head), "a folded line of white space only"
    # Headers in UTF-8 (RFC 6532) are beyond what the reference reads from bytes.
    if raw.isascii():
        parsed = email.message_from_bytes(raw, policy=email.policy.SMTP)
    else:
        parsed = email.message_from_string(raw.decode(), policy=email.policy.SMTPUTF8)
    assert isinstance(parsed, email.message.EmailMessage)
    assert not parsed.defects
    return parsed


def build(**fields: object) -> email.message.EmailMessage:
    """Build a message of the fields, and read it."""
    return parse(builder.build(message(**fields)))


def shape(part: email.message.MIMEPart) -> object:
    """The nesting of the parts, by their types."""
    if not part.is_multipart():
        return part.get_content_type()
    return {part.get_content_type(): [shape(inner) for inner in part.iter_parts()]}
