"""SMTP sessions from a seed, as the bytes that a client sends: it pipelines everything, and reads at the end."""

import random
from typing import Final

ODD_LINES: Final = (
    *(b"NOOP\r\n", b"RSET\r\n", b"VRFY x\r\n", b"HELP\r\n", b"DATA\r\n", b"BAD\r\n", b"MAIL\r\n", b"\r\n", b"NOOP x\n"),
    *(b"x" * 3000 + b"\r\n", b"QUIT now\r\n", b"EHLO\r\n", b"STARTTLS\r\n", b"AUTH PLAIN =\r\n", b"\xff\xfe\r\n"),
    *(
        b"GET / HTTP/1.1\r\n",
        b"BDAT 3\r\nabc",
        b"BDAT x\r\n",
        b"RCPT TO:<ada@example.net>\r\n",
        b"MAIL FROM:<>\r\n",
        b"rset\r\n",
    ),
)
RECIPIENTS: Final = ("ada@example.net", "Ada@Example.net", "bob@example.org")
ODD_RECIPIENTS: Final = ("jürgen@example.net", "", "x", "a@b c", "ada@localhost")
FIELDS: Final = (
    *("Date: Thu, 19 Nov 2026 10:00:00 +0000", "Message-ID: <x@y>", "Cc: bob@example.org", "Bcc: secret@example.org"),
    *("X-Service-Tag: receipt", "MIME-Version: 1.0", "Content-Type: text/html; charset=utf-8", "Reply-To: a@b.example"),
    *("From: again@shop.example.com", "Content-Type: multipart/mixed; boundary=b", "Content-Transfer-Encoding: base64"),
    *("X-Folded: a\r\n b\r\n\tc", "Bad field", "X-Long: " + "x" * 1500, "X-Utf: Grüße", "Return-Path: <a@b>"),
    *("DKIM-Signature: v=1", "List-Unsubscribe: <https://x.example>", "Subject: again", "Received: from x"),
    *("Resent-From: a@b.example", ": empty", "X-Control: \x01", "Sender: x@y.example"),
)
PARTS: Final = (
    "--b\r\nContent-Type: text/plain\r\n\r\npart\r\n"
    "--b\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\nx\r\n--b--\r\n"
)
BODIES: Final = (
    *("Hello there.\r\n", "", ".leading\r\n..two\r\n.\rno\r\n", "Grüße\r\n", PARTS, "x" * 1200 + "\r\n"),
    "a line\r\n" * 3000,
)


def session(chance: random.Random) -> list[bytes]:
    """The segments of a session: a login and transactions, most of them valid, all without waiting for a reply."""
    login = chance.choice(("shop",) * 8 + ("poor", "suspended"))
    steps = [b"EHLO client.example\r\n" if chance.random() < 0.9 else b"HELO client.example\r\n"]
    if chance.random() < 0.95:
        plain, long = f"@@plain:{login}@@", f"AUTH LOGIN\r\n@@username64:{login}@@\r\n@@password64:{login}@@\r\n"
        steps.append((f"AUTH PLAIN {plain}\r\n" if chance.random() < 0.7 else long).encode())
    for _ in range(chance.choice((1, 1, 2, 3))):
        steps += _transaction(chance, login)
    if chance.random() < 0.3:
        steps.insert(chance.randrange(len(steps) + 1), chance.choice(ODD_LINES))
    whole = b"".join([*steps, b"QUIT\r\n"])
    if chance.random() < 0.5:
        return [whole]
    cuts = sorted(chance.sample(range(1, len(whole)), min(12, len(whole) - 1)))
    # No cut inside a placeholder.
    cuts = [cut for cut in cuts if whole[:cut].count(b"@@") % 2 == 0 and whole[cut - 1 : cut + 1] != b"@@"]
    return [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


def _transaction(chance: random.Random, login: str) -> list[bytes]:
    sender = f"mail@{login}.example.com" if chance.random() < 0.9 else chance.choice(("", "x", "mail@other.example"))
    parameters = (
        ("",) * 12
        + (" BODY=8BITMIME",) * 4
        + (" SIZE=1000", " SMTPUTF8", " SIZE=99999999", " X=1", " SIZE=x", " RET=HDRS ENVID=x")
    )
    steps = [f"MAIL FROM:<{sender}>{chance.choice(parameters)}\r\n".encode()]
    for _ in range(chance.choice((0, 1, 1, 1, 1, 2, 3, 60))):
        to = chance.choice(RECIPIENTS if chance.random() < 0.9 else ODD_RECIPIENTS)
        number = f"+{chance.randrange(99)}" if to.startswith("bob") else ""
        parameter = chance.choice(("",) * 9 + (" NOTIFY=NEVER",))
        steps.append(f"RCPT TO:<{to.replace('@', number + '@')}>{parameter}\r\n".encode())
    content = _content(chance, login)
    if chance.random() < 0.25:
        cut = chance.randrange(len(content) + 1)
        steps.append(b"BDAT %d\r\n%s" % (cut, content[:cut]))
        steps.append(b"BDAT %d LAST\r\n%s" % (len(content) - cut, content[cut:]))
    else:
        stuffed = (b"\r\n" + content).replace(b"\r\n.", b"\r\n..")[2:] if chance.random() < 0.9 else content
        steps.append(b"DATA\r\n" + stuffed + (b"" if stuffed.endswith(b"\r\n") else b"\r\n") + b".\r\n")
    return steps


def _content(chance: random.Random, login: str) -> bytes:
    sender = chance.choice((f"mail@{login}.example.com",) * 8 + ("mail@other.example", "", "a@b, c@d", "Jürgen <x@y>"))
    fields = [f"From: {sender}", "To: Ada <ada@example.net>", "Subject: Hello"]
    extra = (*FIELDS, f"X-Idempotency-Key: k{chance.randrange(40)}", f"Idempotency-Key: k{chance.randrange(40)}")
    fields += chance.sample(extra, chance.choice((0, 0, 1, 2, 4)))
    if chance.random() < 0.1:
        fields.pop(chance.randrange(len(fields)))
    chance.shuffle(fields)
    body = chance.choice(BODIES) if chance.random() < 0.95 else "line of content\r\n" * 40_000
    content = ("\r\n".join(fields) + "\r\n\r\n" + body).encode()
    what = chance.random()
    if what < 0.05:
        return content.replace(b"\r\n", b"\n")
    if what < 0.1:
        place = chance.randrange(len(content))
        return content[:place] + chance.choice((b"\r", b"\n", b"\x00", b"\xff", b"\r\n.\n")) + content[place:]
    return content
