"""What a DKIM signature says and what it covers (RFC 6376, RFC 8463): relaxed/relaxed with SHA-256. The caller signs.

`cover` reads the message, once for all its signatures. `prepare` gives a header field up to its `b=` and the digest to
sign; `finish` puts the signature behind it. The fields go in front of the message, which has CRLF line ends. White
space is folded by searches for fixed strings: on the text of ordinary mail they find nothing and cost a few
microseconds, where a regular expression costs hundreds.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

# Covered when they are there (section 5.4.1): what a reader sees, what says how to read it, and what unsubscribing and
# feedback loops rely on (RFC 8058 section 4, RFC 9477 section 3.1.4). Not covered is what hosts on the way add or
# rewrite. Oversigned ones are named once more than they are there, so that none can be added (section 8.15).
OVERSIGNED: Final = (
    *(b"from", b"to", b"cc", b"subject", b"date", b"message-id", b"reply-to", b"mime-version", b"content-type"),
    *(b"list-unsubscribe", b"list-unsubscribe-post", b"list-id"),
)
SIGNED_ONCE: Final = (
    *(b"sender", b"content-transfer-encoding", b"in-reply-to", b"references"),
    *(b"feedback-id", b"cfbl-address"),
)
# Lines of the field stay below the 78 characters of RFC 5322 section 2.1.1, unless a single name is longer.
LINE_CHARACTERS: Final = 74
_LINE_ENDS_BACKWARDS: Final = re.compile(rb"(?:\n\r)*")


class Coverage(msgspec.Struct, frozen=True):
    """What the signatures of a message cover: the names for `h=`, their fields as they are hashed, and `bh=`."""

    names: str
    fields: bytes
    body_hash: str


class UnsignedField(msgspec.Struct, frozen=True):
    """A signature that only lacks its value: the field up to `b=`, and the SHA-256 digest to be signed."""

    field: bytes
    digest: bytes


def cover(content: bytes) -> Coverage:
    """The work on a message that all its signatures share."""
    head, body = _split(content)
    names, fields = _cover(relaxed_head(head))
    body_hash = base64.b64encode(hashlib.sha256(relaxed_body(body)).digest()).decode()
    return Coverage(_fold(names), fields, body_hash)


def prepare(
    coverage: Coverage,
    *,
    domain: str,
    selector: str,
    signed_at: int,
    algorithm: Literal["rsa-sha256", "ed25519-sha256"] = "rsa-sha256",
) -> UnsignedField:
    """Everything but the work of the key. Times are in seconds since 1970; `domain` is in A-labels.

    An RSA key signs the digest as the SHA-256 of PKCS #1 v1.5, an Ed25519 key as its message (RFC 8463 section 3).
    """
    field = (
        f"DKIM-Signature: v=1; a={algorithm}; c=relaxed/relaxed; t={signed_at};\r\n"
        f" d={domain}; s={selector};\r\n"
        f" bh={coverage.body_hash};\r\n h={coverage.names};\r\n b="
    ).encode()
    # The field itself comes last, with an empty `b=` and no line end (section 3.7).
    own = b"dkim-signature:" + field.replace(b"\r\n", b"").partition(b": ")[2]
    return UnsignedField(field, hashlib.sha256(coverage.fields + own).digest())


def finish(unsigned: UnsignedField, signature: bytes) -> bytes:
    """The whole header field with its line end."""
    text = base64.b64encode(signature)
    lines = [text[at : at + LINE_CHARACTERS] for at in range(0, len(text), LINE_CHARACTERS)]
    return b"%b%b\r\n" % (unsigned.field, b"\r\n ".join(lines))


def relaxed_body(body: bytes) -> bytes:
    """Section 3.4.4: white space is one blank, none ends a line, and no empty lines end the body."""
    body = _single_blanks(body).replace(b" \r\n", b"\r\n").removesuffix(b" ")
    ending = line_ends_length(body)
    if ending == len(b"\r\n") < len(body):
        return body
    body = body[: len(body) - ending]
    return body + b"\r\n" if body else b""


def line_ends_length(body: bytes) -> int:
    """Of the line ends at the end. Read backwards, they are found in one go, however many there are."""
    found = _LINE_ENDS_BACKWARDS.match(body[len(body.rstrip(b"\r\n")) :][::-1])
    return found.end() if found else 0


def relaxed_head(head: bytes) -> list[tuple[bytes, bytes]]:
    """Section 3.4.2: the fields in their order, each as its name in lower case and the whole of it as it is hashed."""
    unfolded = head.replace(b"\r\n ", b" ").replace(b"\r\n\t", b" ")
    fields = []
    for line in _single_blanks(unfolded).split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if colon:
            lowered = name.rstrip(b" ").lower()
            fields.append((lowered, b"%b:%b\r\n" % (lowered, value.strip(b" "))))
    return fields


def _split(content: bytes) -> tuple[bytes, bytes]:
    """The header and the body, without the empty line between them."""
    if content.startswith(b"\r\n"):
        return b"", content[2:]
    head, _, body = content.partition(b"\r\n\r\n")
    return head, body


def _single_blanks(text: bytes) -> bytes:
    """Every run of blanks and tabs as one blank. Each turn halves the runs, so there are few."""
    text = text.replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text


def _cover(fields: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[bytes, ...], bytes]:
    """The names for `h=`, and the fields in that order: of several with one name the last comes first (5.4.2)."""
    present: dict[bytes, list[bytes]] = {}
    for name, field in fields:
        present.setdefault(name, []).append(field)
    names: list[bytes] = []
    chosen: list[bytes] = []
    for group in (OVERSIGNED, SIGNED_ONCE):
        for name in group:
            if found := present.get(name):
                names += [name] * len(found)
                chosen += found[::-1]
            if group is OVERSIGNED:
                names.append(name)
    return tuple(names), b"".join(chosen)


@functools.lru_cache(maxsize=64)  # most messages of a service have the same fields
def _fold(names: tuple[bytes, ...]) -> str:
    """The list for `h=`, folded after colons."""
    lines: list[str] = []
    line, *others = (name.decode() for name in names)
    for name in others:
        if len(line) + len(name) + 2 > LINE_CHARACTERS:
            lines.append(f"{line}:")
            line = name
        else:
            line = f"{line}:{name}"
    return "\r\n ".join([*lines, line])
