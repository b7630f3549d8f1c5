"""Addresses and lists of them, from any octets.

Holds: nothing but `AddressError` is raised; a slow and obvious reader says the same; what the published pattern
matches is taken; the address that was read, and its written form, are read as the same again; a list is of addresses
that stand alone, and is no longer than its bound.
"""

import re
from typing import Final

from postroad.protocol.mime import address, address_lists, header_fields
from tests.fuzz import target
from tests.fuzz.targets import reference_addresses

# In ECMA-262, which is what JSON Schema means, `$` is the end; in Python it is also before a last line break.
_PATTERN: Final = re.compile(address.SCHEMA_PATTERN.removesuffix("$") + r"\Z")
# A refusal quotes 64 characters, each of which may be escaped in ten.
_MAX_WORDS: Final = 1_000


def check(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    _check_one(text)
    _check_list(text)
    try:
        domain = address.parse_domain(text)
    except address.AddressError as refusal:
        _check_error_text(str(refusal))
    else:
        assert address.parse_domain(domain) == domain


def _check_error_text(refusal: str) -> None:
    assert target.is_sayable(refusal, most=_MAX_WORDS)


def _check_one(text: str) -> None:
    obvious = reference_addresses.read(text)
    is_text = not any("\ud800" <= character <= "\udfff" for character in text)
    try:
        mailbox = address.parse(text)
    except address.AddressError as refusal:
        _check_error_text(str(refusal))
        assert obvious is None, "the obvious reader takes it"
        # No JSON carries an unpaired surrogate.
        if is_text and len(text) <= address.MAX_CHARACTERS:
            assert not _PATTERN.search(text), "the schema promises to take it"
        assert address.key_of(text) == text.lower()
        return
    assert (mailbox.display_name, mailbox.local, mailbox.domain) == obvious
    _check_mailbox(mailbox)
    assert mailbox.written == text
    again = address.parse(mailbox.written_address)
    assert (again.local, again.domain) == (mailbox.local, mailbox.domain)


def _check_mailbox(mailbox: address.Mailbox) -> None:
    assert len(mailbox.address.encode()) <= 254
    assert mailbox.domain.isascii()
    again = address.parse(mailbox.address)
    assert (again.display_name, again.local, again.domain) == (None, mailbox.local, mailbox.domain)
    assert again.key == mailbox.key
    if mailbox.display_name is not None:
        named = address.parse(f"{header_fields.quote(mailbox.display_name)} <{mailbox.address}>")
        assert named.display_name == mailbox.display_name.strip()


def _check_list(text: str) -> None:
    try:
        mailboxes = address_lists.parse_list(text)
    except address.AddressError as refusal:
        _check_error_text(str(refusal))
        return
    assert len(mailboxes) <= address_lists.MAX_ADDRESSES
    for mailbox in mailboxes:
        _check_mailbox(mailbox)
    together = ", ".join(mailbox.address for mailbox in mailboxes)
    assert [each.key for each in address_lists.parse_list(together)] == [each.key for each in mailboxes]


TARGET: Final = target.Target(
    name="address",
    open=target.plain(check),
    watches=("protocol/mime/address", "protocol/mime/header_fields.py"),
    seeds=(
        b"user@example.com",
        b"Name <user@example.com>",
        b'"Name, \\"quoted\\"" <user@example.com>',
        "Jürgen <jürgen@bücher.example>".encode(),
        b"a@xn--bcher-kva.example",
        b"a.b+c@sub.example.co.uk, B <b@example.com>; (comment (nested)) c@example.com",
        b"group: a@example.com, b@example.com;, =?utf-8?q?J=C3=BCrgen?= <j@example.com>",
        b'"a"@example.com',
        b"@route.example:user@example.com",
        b"user@[127.0.0.1]",
        b"a..b@example.com",
        b"Name <a b@example.com>",
        "a☃b@example.com".encode(),
        "a\u0301b@exa\u0301mple.com".encode(),
        "user＠example．com".encode(),
        b"x" * 64 + b"@" + b"y" * 63 + b".com",
    ),
    max_octets=1_200,
    steps=(8_000, 150),
)
