"""The message that every peer is given: 2.5 KB of text and 2.5 KB of HTML, as a receipt or a notice has them.

Whoever asks for more gets parts of another size, such as those of a long newsletter.
One content, two forms: the JSON body of `POST /emails` for HTTP and the MIME message (RFC 5322, RFC 2046)
for SMTP. `SERIAL` marks where the HTTP injector writes the number of the message, always twelve digits, so
that the length of a request never changes and no two recipients are equal. `VALUES` mark where it writes the words of a
file of lines.
"""

import email.message
import email.policy
import json
import typing

SERIAL = "@" * 12
VALUES = ("#" * 12, "%" * 12)
PART_BYTES = 2560
LARGE_PART_BYTES = 51_200
SENDER = "orders@example.com"
RECIPIENT_DOMAIN = "example.net"
SUBJECT = "Your order has been shipped"

Content = typing.Literal["ascii", "utf8"]

PARAGRAPHS: typing.Mapping[Content, tuple[str, ...]] = {
    "ascii": (
        "Thank you for your order. The parcel left our warehouse this morning",
        "and the carrier expects to hand it over within two working days. You",
        "can follow it with the number below; it may take some hours until the",
        "first scan shows. If something is missing, write to us within 14 days.",
    ),
    "utf8": (
        "Vielen Dank für Ihre Bestellung. Das Päckchen hat unser Lager heute",
        "verlassen und müsste übermorgen bei Ihnen sein: 39,90 €. Besten Gruß,",
        "Zoë Müller. Děkujeme za objednávku, zásilka je na cestě. Tack för din",
        "beställning. If something is missing, write to us within 14 days.",
    ),
}


def text(content: Content, *, part_bytes: int = PART_BYTES) -> str:
    """The plain part: whole lines until the size is reached."""
    return "".join(_lines(content, before="", after="\n", part_bytes=part_bytes))


def html(content: Content, *, part_bytes: int = PART_BYTES) -> str:
    """The HTML part, of the same size, its markup included."""
    return "".join(_lines(content, before="<p>", after="</p>\n", part_bytes=part_bytes))


def _lines(content: Content, *, before: str, after: str, part_bytes: int) -> typing.Iterator[str]:
    size = 0
    number = 0
    while size < part_bytes:
        words = PARAGRAPHS[content][number % len(PARAGRAPHS[content])]
        line = f"{before}{number:03} {words}{after}"
        size += len(line.encode())
        number += 1
        yield line


def as_json(
    content: Content, *, part_bytes: int = PART_BYTES, sender: str = SENDER, recipients: int | None = None
) -> bytes:
    """The body of `POST /emails`, to one recipient or to a list of so many."""
    everybody = [f"customer-{number}-{SERIAL}@{RECIPIENT_DOMAIN}" for number in range(recipients or 0)]
    fields = {
        "from": f"Postroad Orders <{sender}>",
        "to": everybody or f"customer-{SERIAL}@{RECIPIENT_DOMAIN}",
        "subject": SUBJECT,
        "text": text(content, part_bytes=part_bytes),
        "html": html(content, part_bytes=part_bytes),
    }
    return json.dumps(fields, ensure_ascii=False).encode()


def as_mime(content: Content, *, part_bytes: int = PART_BYTES) -> bytes:
    """The same message for SMTP, lines ended by LF alone: `smtp-source -F` writes the CRLF itself."""
    mime = email.message.EmailMessage(policy=email.policy.SMTP.clone(linesep="\n"))
    mime["From"] = f"Postroad Orders <{SENDER}>"
    mime["To"] = f"customer@{RECIPIENT_DOMAIN}"
    mime["Subject"] = SUBJECT
    mime["Date"] = "Sat, 01 Nov 2025 12:00:00 +0000"
    mime["Message-ID"] = "<benchmark@example.com>"
    mime.set_content(text(content, part_bytes=part_bytes))
    mime.add_alternative(html(content, part_bytes=part_bytes), subtype="html")
    return mime.as_bytes()
