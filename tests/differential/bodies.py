"""Bodies of send requests: a valid one, and changes of its members, most of them to what is refused."""

import base64
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

Body = dict[str, Any]
Change = Callable[[random.Random, Body], None]

ADDRESSES: Final = (
    "ada@example.net",
    "Ada@Example.NET",
    "Ada Lovelace <ada@example.net>",
    '"Lovelace, Ada" <ada@example.org>',
    "bob@example.org",
    "grace@xn--bcher-kva.example",
    "grace@bücher.example",
    "jürgen@example.net",
    "Jürgen Müller <juergen@example.net>",
    "bounce@example.com",
)
BAD_ADDRESSES: Final = (
    *(
        "",
        " ",
        "ada",
        "ada@",
        "@example.net",
        "ada@@example.net",
        "a b@example.net",
        "ada@example.net, bob@example.org",
    ),
    *(
        "ada@exa mple.net",
        "ada@example.net\r\nBcc: x@example.org",
        "<ada@example.net",
        "ada@[192.0.2.1]",
        "ada@localhost",
    ),
    *("a" * 65 + "@example.net", "ada@" + "x" * 64 + ".example", "ada@" + "x." * 130 + "example", "\x00@example.net"),
)
WORDS: Final = (
    "hello",
    "Grüße",
    "日本語",
    "🎉",
    "tab\tbed",
    "line\nbreak",
    "<b>bold</b>",
    "'quoted'",
    "back\\slash",
    "\u2028",
)
ODD_VALUES: Final[Sequence[object]] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1e400,
    10**30,
    "",
    " ",
    [],
    {},
    [[]],
    [None],
    {"a": 1},
    "x" * 600,
    "\x00",
)
MEMBERS: Final = (
    *("from", "to", "cc", "bcc", "reply_to", "subject", "text", "html", "template", "variables", "headers", "tags"),
    *("send_at", "expires_in", "metadata", "attachments", "simulate"),
)


def _several(chance: random.Random, body: Body) -> None:
    member = chance.choice(("to", "cc", "bcc"))
    count = chance.choice((0, 1, 2, 3, 10, 51))
    people = (
        [chance.choice(ADDRESSES) for _ in range(count)]
        if count < 10
        else [f"p{each}@example.net" for each in range(count)]
    )
    body[member] = people if chance.random() < 0.9 else [*people, chance.choice(BAD_ADDRESSES)]


def _bad_address(chance: random.Random, body: Body) -> None:
    body[chance.choice(("from", "to", "cc", "bcc", "reply_to"))] = chance.choice(BAD_ADDRESSES)


def _sender(chance: random.Random, body: Body) -> None:
    senders: tuple[str, ...] = (
        "Shop <mail@shop.example.com>",
        "mail@SHOP.example.com",
        "mail@unverified.example.com",
        "mail@other.example",
    )
    senders += (
        "mail@sub.shop.example.com",
        "Müller <mail@second.example.com>",
        "mail@poor.example.com",
        "mail@few.example.com",
    )
    body["from"] = chance.choice((*senders, "mail@suspended.example.com"))


def _reply_to(chance: random.Random, body: Body) -> None:
    body["reply_to"] = chance.choice(
        (chance.choice(ADDRESSES), list(ADDRESSES[:3]), [ADDRESSES[0]], [], list(ADDRESSES) * 2)
    )


def _subject(chance: random.Random, body: Body) -> None:
    subjects = (
        "",
        " ",
        "x" * 500,
        "x" * 501,
        "é" * 500,
        "a\r\nBcc: x@example.net",
        "a\tb",
        "\x7f",
        chance.choice(WORDS),
    )
    body["subject"] = chance.choice(subjects)


def _bodies(chance: random.Random, body: Body) -> None:
    for member in ("text", "html"):
        texts = ("", " ".join(chance.choices(WORDS, k=5)), "x" * 2000, "a\rb", "a\r\nb", ".\n..\n", "x\x00y", None)
        body[member] = chance.choice(texts)


def _template(chance: random.Random, body: Body) -> None:
    if chance.random() < 0.8:
        body.pop("text", None)
        body.pop("html", None)
    if chance.random() < 0.7:
        body.pop("subject", None)
    body["template"] = chance.choice(("welcome", "welcome", "list", "none", "Bad Alias", ""))
    variables: tuple[object, ...] = (
        {"name": "Ada"},
        {"name": 1},
        {},
        {"count": 2, "parcels": [{"name": "a"}, {"name": "<b>"}]},
        {"name": None},
    )
    variables += (
        {"name": {"a": [1, 2]}},
        {f"v{each}": each for each in range(33)},
        {"name": "x" * 70_000},
        {"na me": "x"},
    )
    body["variables"] = chance.choice(variables)


def _headers(chance: random.Random, body: Body) -> None:
    names: tuple[str, ...] = (
        "X-Order",
        "List-Unsubscribe",
        "From",
        "to",
        "Subject",
        "Content-Type",
        "X-Service-Tag",
        "DKIM-Signature",
        "Precedence",
    )
    names += (
        "x y",
        "",
        "X:",
        "X-é",
        "x" * 77,
        "Return-Path",
        "Received",
        "Message-ID",
        "Date",
        "In-Reply-To",
        "List-Unsubscribe-Post",
    )
    values = (
        "1",
        "<https://shop.example.com/u>",
        "a\r\nb: c",
        "é",
        "x" * 999,
        "",
        "List-Unsubscribe=One-Click",
        "\x01",
        1,
    )
    body["headers"] = {chance.choice(names): chance.choice(values) for _ in range(chance.choice((1, 2, 5)))}
    if chance.random() < 0.1:
        body["headers"] = {f"X-{each}": "1" for each in range(60)}


def _tags(chance: random.Random, body: Body) -> None:
    tags: tuple[object, ...] = (
        "receipt",
        ["receipt", "shop"],
        [],
        ["receipt", "receipt"],
        [f"t{each}" for each in range(21)],
        "x" * 129,
        " ",
        "é",
        "a,b",
    )
    body["tags"] = chance.choice((*tags, ["a", ""], " receipt "))


def _metadata(chance: random.Random, body: Body) -> None:
    choices: tuple[object, ...] = (
        {"order": "1042"},
        {"order": 1042},
        {"a b": "x"},
        {"": "x"},
        {"k": "x" * 501},
        {"k": ""},
        {},
    )
    body["metadata"] = chance.choice((*choices, {f"k{each}": "v" for each in range(21)}, {"k": "é🎉"}, "x"))


def _attachments(chance: random.Random, body: Body) -> None:
    attachments = []
    for _ in range(chance.choice((1, 1, 2, 21))):
        content = base64.b64encode(chance.randbytes(chance.choice((0, 1, 2, 100)))).decode()
        attachment = {
            "filename": chance.choice(
                ("a.txt", "a.pdf", "é.png", "a/b", "..", "", "x" * 256, "a\nb", "noextension", "a.exe")
            ),
            "content": chance.choice((content,) * 4 + ("!", "YQ", "YQ==\n", "=")),
        }
        if chance.random() < 0.4:
            attachment["content_type"] = chance.choice(
                ("text/plain", "text/html; charset=utf-8", "bad", "", "message/rfc822", "a/b\r\nc: d")
            )
        if chance.random() < 0.3:
            attachment["content_id"] = chance.choice(("logo", "logo@x", "<logo>", "", "a b", "logo"))
        if chance.random() < 0.05:
            attachment["unknown"] = "x"
        attachments.append(attachment)
    body["attachments"] = attachments


def _expires(chance: random.Random, body: Body) -> None:
    body["expires_in"] = chance.choice((60, 120, 59, 0, -1, 432000, 432001, 1.5, "60", True))


def _simulate(chance: random.Random, body: Body) -> None:
    choices: tuple[object, ...] = (
        {"provider": "google", "behaviour": "rate_limited"},
        {"provider": "x"},
        {},
        None,
        "x",
    )
    body["simulate"] = chance.choice(choices)


def _unknown(chance: random.Random, body: Body) -> None:
    body[chance.choice(("sender", "From", "x", "", "é", "to "))] = chance.choice(ODD_VALUES)


CHANGES: Final[Sequence[Change]] = (
    *(_several, _several, _bad_address, _sender, _reply_to, _subject, _bodies, _bodies, _template, _headers, _tags),
    *(_metadata, _attachments, _expires, _simulate, _unknown),
)
