"""Mail as applications send it, for filters and verifiers: each a send request, or a message over SMTP by its name.

Those over SMTP are written by the standard library as `smtplib.send_message` writes them, or line by line as other
libraries do. All of it is for one destination.
"""

import base64
import email.policy
from email.message import EmailMessage
from typing import Any, Final

from postroad.model.mail import send_request

TO: Final = "Ada Lovelace <ada@example.net>"
ORDER: Final = (
    "Hello Ada,\n\nthank you for your order 4711. We have packed two books and one pencil, and the parcel leaves our\n"
    "warehouse tomorrow morning. You can follow it on its way with the number that we will send you then.\n\n"
    "If something is missing or damaged, just answer this message.\n\nKind regards\nYour shop\n"
)
# Filters want more words than pictures.
LONG_ORDER: Final = ORDER + "".join(
    f"\nItem {number}: a book of {number * 20} pages about gardens, kitchens and pencils, printed on grey paper.\n"
    for number in range(1, 40)
)
GERMAN: Final = (
    "Guten Tag Jörg,\n\nIhre Bestellung 4711 über zwei Bücher für Gärtner ist heute früh unterwegs zu Ihnen. Größe\n"
    "und Gewicht des Päckchens finden Sie in der Übersicht.\n\nFreundliche Grüße\nIhr Lädle\n"
)
JAPANESE: Final = (
    "こんにちは\n\nご注文いただきありがとうございます。商品は明日発送されます。\n\nよろしくお願いいたします。\n"
)
ARABIC: Final = "مرحبا\n\nشكرا لطلبك. سيغادر الطرد مستودعنا غدا صباحا.\n\nمع أطيب التحيات\n"
IMAGE: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC"
)
PDF: Final = base64.b64encode(b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").decode()


def html_of(text: str, *, before: str = "") -> str:
    """A page that says the same."""
    lines = "".join(f"<p>{part}</p>\n" for part in text.replace("\n\n", "\0").replace("\n", "<br>\n").split("\0"))
    head = '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Your order</title></head>\n'
    return f"{head}<body>\n{before}{lines}</body></html>\n"


def file(filename: str, content: bytes | str, **more: str) -> send_request.Attachment:
    """An attachment; text is base64 already."""
    encoded = content if isinstance(content, str) else base64.b64encode(content).decode()
    return send_request.Attachment(filename=filename, content=encoded, **more)


TABLE: Final = (
    "<table><tr><th>Title</th><th>Price</th></tr>\n<tr><td>Gardening</td><td>12.50</td></tr>\n"
    "<tr><td>Cooking</td><td>20.00</td></tr></table>\n"
    '<p><a href="https://www.example.com/orders/4711">Your order</a></p>\n'
)
LOGO: Final = '<p><img src="cid:logo" alt="The shop" width="10" height="10"></p>\n'
LIST: Final = {
    "List-Id": "News of the shop <news.example.com>",
    "List-Unsubscribe": "<https://www.example.com/unsubscribe/4711>, <mailto:unsubscribe@example.com>",
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
}

# Over HTTP: what differs from a plain text to one person.
REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "text": {},
    "text-german": {"subject": "Ihre Bestellung ist unterwegs", "text": GERMAN},
    "text-japanese": {"subject": "ご注文の確認", "text": JAPANESE},
    "text-arabic": {"subject": "طلبك", "text": ARABIC},
    "text-emoji": {"subject": "Your parcel 📦 leaves tomorrow", "text": ORDER + "🎉\n"},
    "text-long-lines": {"text": ORDER + "The list of all books: " + "gardening, cooking, " * 150 + "the end.\n"},
    "text-dots-and-from": {"text": ".\n..\n.profile\nFrom here on\n" + ORDER},
    "text-blank-at-the-limit": {"text": "é\n" + "x" * 74 + " \n" + ORDER},
    "html": {"text": None, "html": html_of(ORDER)},
    "html-german": {"text": None, "html": html_of(GERMAN), "subject": "Ihre Bestellung für den Garten"},
    "text-and-html": {"html": html_of(ORDER)},
    "text-and-html-german": {"text": GERMAN, "html": html_of(GERMAN), "subject": "Übersicht Ihrer Bestellung"},
    "text-and-html-links": {
        "text": "Title: Gardening 12.50\nCooking 20.00\n" + ORDER,
        "html": html_of(ORDER, before=TABLE),
    },
    "inline-image": {
        "text": LONG_ORDER,
        "html": html_of(LONG_ORDER, before=LOGO),
        "attachments": [file("logo.png", IMAGE, content_id="logo")],
    },
    "pdf": {"attachments": [file("invoice.pdf", PDF)]},
    "pdf-german-name": {"text": GERMAN, "attachments": [file("Rechnung für März.pdf", PDF)]},
    "text-attachment": {"attachments": [file("notes.txt", b"One line.\r\nAnother line.\r\n")]},
    "csv-attachment": {"text": GERMAN, "attachments": [file("list.csv", "Größe;Stück\r\nklein;3\r\n".encode())]},
    "everything": {
        "text": LONG_ORDER,
        "html": html_of(LONG_ORDER, before=LOGO),
        "attachments": [
            file("logo.png", IMAGE, content_id="logo"),
            file("invoice.pdf", PDF),
            file("notes.txt", b"One line.\n"),
            file("data.bin", bytes(range(256)) * 40),
        ],
    },
    "names-beyond-ascii": {"sender": "Lädle Müller <shop@example.com>", "to": ("Jörg Größe <jorg@example.net>",)},
    "names-with-commas": {"sender": '"Shop, the" <shop@example.com>', "to": ('"Lovelace, Ada" <ada@example.net>',)},
    "many-recipients": {"to": tuple(f"{name}@example.net" for name in "max ada lea bob ned eve kim joe".split())},
    "cc-and-reply-to": {"cc": ("Bob <bob@example.net>",), "reply_to": "Help <help@example.com>"},
    "bcc": {"bcc": ("eve@example.net",)},
    "long-subject": {"subject": "Ihre Bestellung über zwei Bücher für Gärtner und einen Bleistift " * 2 + "ist da"},
    "list": {"html": html_of(ORDER), "headers": LIST, "subject": "News of November"},
    "reply": {
        "subject": "Re: Your question",
        "headers": {"In-Reply-To": "<1@example.net>", "References": "<1@example.net>"},
    },
    "tags-and-headers": {
        "tags": ("order", "größe"),
        "headers": {"X-Campaign": "Frühling", "Auto-Submitted": "auto-generated"},
    },
}


def request(name: str) -> dict[str, Any]:
    """The members of one of the requests."""
    members = {"sender": "Shop <shop@example.com>", "to": (TO,), "subject": "Your order 4711", "text": ORDER}
    return members | REQUESTS[name]


def _by_smtplib(subject: str, text: str, *, html: str | None = None, files: bool = False) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Lädle <shop@example.com>", TO, subject
    message.set_content(text)
    if html is not None:
        message.add_alternative(html, subtype="html")
    if files:
        message.add_attachment(base64.b64decode(PDF), maintype="application", subtype="pdf", filename="Größe.pdf")
        message.add_attachment("One line.\n", filename="notes.txt")
    return message.as_bytes(policy=email.policy.SMTP)


HEAD: Final = "From: Shop <shop@example.com>\nTo: Ada Lovelace <ada@example.net>\nDate: {date}\n"
DJANGO: Final = (
    'Content-Type: multipart/alternative;\n boundary="===============0987654321=="\nMIME-Version: 1.0\n'
    "Subject: =?utf-8?q?Ihre_Bestellung_f=C3=BCr_den_Garten?=\n{head}Message-ID: {id}\n\n"
    '--===============0987654321==\nContent-Type: text/plain; charset="utf-8"\nMIME-Version: 1.0\n'
    "Content-Transfer-Encoding: 8bit\n\n{text}\n--===============0987654321==\n"
    'Content-Type: text/html; charset="utf-8"\nMIME-Version: 1.0\nContent-Transfer-Encoding: 8bit\n\n{html}\n'
    "--===============0987654321==--\n"
)
EIGHT_BIT: Final = "MIME-Version: 1.0\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n"


def _django(*, identity: str) -> str:
    return DJANGO.format(head=HEAD, id=identity, text=GERMAN, html=html_of(GERMAN))


# Over SMTP; {date} is filled in when they are sent.
MESSAGES: Final[dict[str, bytes]] = {
    "smtplib-text": _by_smtplib("Your order 4711", ORDER),
    "smtplib-german": _by_smtplib("Ihre Bestellung für den Garten", GERMAN),
    "smtplib-html": _by_smtplib("Your order 4711", ORDER, html=html_of(ORDER)),
    "smtplib-files": _by_smtplib("Ihre Bestellung für den Garten", GERMAN, html=html_of(GERMAN), files=True),
    "django": _django(identity="<163172391.1.4711@web1.example.com>").encode(),
    "django-localhost": _django(identity="<163172391.1.4711@localhost>").encode(),
    "8bit-utf-8": f"{HEAD}Subject: Your order\n{EIGHT_BIT.format(charset='utf-8')}\n{GERMAN}".encode(),
    "8bit-latin-1": f"{HEAD}Subject: Your order\n{EIGHT_BIT.format(charset='iso-8859-1')}\n{GERMAN}".encode("latin-1"),
    "8bit-without-mime": f"{HEAD}Subject: Your order\n\n{GERMAN}".encode(),
    "bare": f"From: shop@example.com\nTo: ada@example.net\nSubject: Your order\n\n{ORDER}".encode(),
    "smtp-list": (
        HEAD
        + "Subject: News of November\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
        + "".join(f"{name}: {value}\n" for name, value in LIST.items())
        + f"\n{ORDER}"
    ).encode(),
}


def message(name: str, *, date: str) -> bytes:
    """The bytes of one of the messages, as a client sends them."""
    return MESSAGES[name].replace(b"{date}", date.encode()).replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
