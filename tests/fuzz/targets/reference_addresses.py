"""One address, read a second time: slowly, a character after the other, straight from the words of `address.py`.

It shares no expression with the parser, only IDNA itself. Where the two do not agree, one of them is wrong.
"""

import string
import unicodedata
from typing import Final

import idna

ATOM: Final = string.ascii_letters + string.digits + "!#$%&'*+-/=?^_`{|}~"
SPECIALS: Final = '"(),:;<>@[\\]'

Read = tuple[str | None, str, str]


def read(text: str) -> Read | None:
    """Name, local part and domain; None for everything that is not one address."""
    if len(text) > 1000 or "=?" in text or any(map(_is_unseen, text)):
        return None
    text = text.strip(" ")
    name: str | None = None
    if text.endswith(">"):
        if "<" not in text:
            return None
        at = text.rindex("<")
        found = _name(text[:at].strip())
        if found is None or len(found) > 255 or "=?" in found:
            return None
        name, text = found or None, text[at + 1 : -1]
    if text.count("@") != 1:
        return None
    local, domain = text.split("@")
    local, host = unicodedata.normalize("NFC", local), _domain(domain)
    if host is None or not _is_local(local) or len(f"{local}@{host}".encode()) > 254:
        return None
    return name, local, host


def _is_unseen(character: str) -> bool:
    """Controls, breaks of lines, marks of direction, halves of surrogate pairs."""
    number = ord(character)
    return (
        unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
        or 0x202A <= number <= 0x202E
        or 0x2066 <= number <= 0x2069
    )


def _name(text: str) -> str | None:
    """A name, which may be empty; None when it cannot be one."""
    if not text.startswith('"'):
        return None if any(character in SPECIALS for character in text) else text
    read, rest = "", iter(text[1:].rstrip(" "))
    for character in rest:
        if character == '"':
            return None if next(rest, None) is not None else read.strip()
        if character == "\\":
            character = next(rest, "")  # noqa: PLW2901 - the one that is quoted
            if not " " <= character <= "~":
                return None
        read += character
    return None


def _is_local(text: str) -> bool:
    for atom in text.split("."):
        if not atom or unicodedata.combining(atom[0]):
            return False
        for character in atom:
            is_letter = ord(character) > 127 and unicodedata.category(character)[0] in "LMN"
            if character not in ATOM and not is_letter:
                return False
    return len(text.encode()) <= 64


def _domain(text: str) -> str | None:
    if not text.isascii() or "xn--" in text.lower():
        try:
            text = idna.encode(text, uts46=True, std3_rules=True).decode()
        except idna.IDNAError:
            return None
    labels = text.lower().split(".")
    if len(labels) < 2 or len(text) > 253 or not labels[-1][:1].isalpha():
        return None
    for label in labels:
        if not 1 <= len(label) <= 63 or label.startswith("-") or label.endswith("-"):
            return None
        if any(character not in string.ascii_lowercase + string.digits + "-" for character in label):
            return None
    return ".".join(labels)
