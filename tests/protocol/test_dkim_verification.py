"""Signatures of others are verified: the examples of RFC 8463, our own, and nothing that was changed or is unsafe."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.dns import tag_lists
from postroad.protocol.signatures import dkim, dkim_verification
from tests import dkim_signatures

NOW = 1_600_000_000
# RFC 8463 appendix A.3, and the keys of A.2.
RFC_8463 = b"""\
DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
""".replace(b"\n", b"\r\n")
RFC_RECORDS = {
    "brisbane": "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
    "test": "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWR"
    "iGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutAC"
    "DfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3"
    "Ip3G+2kryOTIKT+l/K4w3QIDAQAB",
}
CONTENT = b"From: fbl@provider.example\r\nTo: <x@example.com>\r\nSubject:  a\r\n\tb \r\n\r\nHello \t you\r\n\r\n\r\n"


def proven(content: bytes, record: str | None = None, *, now: int = NOW) -> list[str]:
    """The selectors of the signatures that hold."""
    records = RFC_RECORDS if record is None else {}
    return [
        each.selector
        for each in dkim_verification.Message(content).signatures(now=now)
        if dkim_verification.is_proven(each, records.get(each.selector, record or ""))
    ]


def signed(**tags: str | None) -> tuple[bytes, str]:
    """A message with a signature, and the record of its key."""
    return dkim_signatures.sign(CONTENT, tags=tags), dkim_signatures.RECORD


def test_the_examples_of_the_standard_hold() -> None:
    assert proven(RFC_8463) == ["brisbane", "test"]
    first, second = dkim_verification.Message(RFC_8463).signatures(now=NOW)
    assert (first.domain, first.identity, first.algorithm) == (*["football.example.com"] * 2, "ed25519-sha256")
    assert second.algorithm == "rsa-sha256"
    assert not dkim_verification.is_proven(first, RFC_RECORDS["test"])
    assert not dkim_verification.is_proven(second, RFC_RECORDS["brisbane"])


@pytest.mark.parametrize(
    "old, new",
    [
        (b"lost the game", b"won the game"),
        (b"Is dinner", b"Was dinner"),
        (b"joe@football", b"eve@football"),
        (b"t=1528637909", b"t=1528637908"),
        (b"i=@football", b"i=x@football"),
        (b"From: Joe", b"Subject: again\r\nFrom: Joe"),
        (b"From: Joe", b"From: eve@football.example.com\r\nFrom: Joe"),
    ],
)
def test_nothing_that_was_changed_holds(old: bytes, new: bytes) -> None:
    assert proven(RFC_8463.replace(old, new)) == []


def test_what_relaxed_forms_ignore_may_change() -> None:
    changed = RFC_8463.replace(b"Subject: Is dinner", b"SUBJECT:Is \t\r\n dinner").replace(
        b"Joe.\r\n", b"Joe. \r\n\r\n"
    )
    assert proven(b"Received: from somewhere\r\n" + changed) == ["brisbane", "test"]


@pytest.mark.parametrize("algorithm", ["rsa-sha256", "ed25519-sha256"])
@pytest.mark.parametrize("forms", ["simple/simple", "simple", "relaxed/simple", "relaxed", "simple/relaxed", None])
@pytest.mark.parametrize("body", [b"Hello \t you\r\n\r\n\r\n", b"", b"\r\n", b"no end", b"a\r\n\n\r\n"])
def test_signatures_in_every_form_hold(algorithm: str, forms: str | None, body: bytes) -> None:
    content = CONTENT.partition(b"Hello")[0] + body
    message = dkim_signatures.sign(content, tags={"a": algorithm, "c": forms})
    assert proven(message, dkim_signatures.record(algorithm)) == ["sel"]
    assert proven(message.replace(b"fbl@", b"eve@"), dkim_signatures.record(algorithm)) == []
    assert proven(message + b"more\r\n", dkim_signatures.record(algorithm)) == []


def test_simple_forms_ignore_only_empty_lines_at_the_end() -> None:
    message, record = signed(c="simple/simple")
    assert proven(message + b"\r\n\r\n", record) == ["sel"]
    assert proven(message.replace(b"Hello \t you", b"Hello you"), record) == []
    assert proven(message.replace(b"Subject:  a", b"Subject: a"), record) == []


def test_our_own_signatures_hold() -> None:
    key = dkim_signatures.RSA_KEY
    unsigned = dkim.prepare(dkim.cover(CONTENT), domain="provider.example", selector="own", signed_at=NOW)
    value = key.sign(unsigned.digest, padding.PKCS1v15(), dkim_signatures.PREHASHED)
    assert proven(dkim.finish(unsigned, value) + CONTENT, dkim_signatures.RECORD) == ["own"]


@pytest.mark.parametrize(
    "tags",
    [
        {"l": "5"},
        {"l": "0"},
        {"x": str(NOW - 1)},
        {"x": "soon"},
        {"x": "-1"},
        {"t": "now"},
        {"v": "2"},
        {"v": None},
        {"a": "rsa-sha1"},
        {"c": "nofws/simple"},
        {"c": "relaxed/other"},
        {"h": "to:subject"},
        {"h": "from:" * 201 + "to"},
        {"i": "fbl@provider2.example"},
        {"i": "fbl@example"},
        {"q": "other"},
        {"d": "provider..example;x"},
        {"d": ""},
        {"s": "a b"},
        {"s": "a..b"},
        {"s": "a" * 64},
        {"s": "a." * 60 + "aa"},
        {"s": ""},
        {"b": "="},
        {"bh": "!"},
    ],
    ids=str,
)
def test_what_is_unsafe_expired_or_malformed_is_no_signature(tags: dict[str, str | None]) -> None:
    assert proven(*signed(**tags)) == []


@pytest.mark.parametrize("tags", [{"x": str(NOW)}, {"i": "a@mail.provider.example"}, {"q": "dns/txt"}, {"z": "any"}])
def test_what_is_allowed_holds(tags: dict[str, str | None]) -> None:
    assert proven(*signed(**tags)) == ["sel"]


@pytest.mark.parametrize(
    "old, new, holds",
    [
        ("v=DKIM1; ", "", True),
        ("k=rsa; ", "", True),
        ("k=rsa; ", "k=rsa; h=sha1:sha256; s=email; t=s; n=x; ", True),
        ("v=DKIM1", "v=DKIM2", False),
        ("k=rsa", "k=ed25519", False),
        ("k=rsa; ", "k=rsa; t=y; ", False),
        ("k=rsa; ", "k=rsa; h=sha1; ", False),
        ("k=rsa; ", "k=rsa; s=other; ", False),
        ("p=", "p=;q=", False),
        ("p=", "p=AAAA", False),
        ("p=", "p=!", False),
        ("p=", "p==", False),
    ],
)
def test_the_key_record_decides(old: str, new: str, holds: bool) -> None:  # noqa: FBT001 - a row of the table
    message, record = signed()
    assert proven(message, record.replace(old, new)) == (["sel"] if holds else [])


def test_a_strict_record_allows_no_subdomain() -> None:
    message, record = signed(i="a@mail.provider.example")
    assert proven(message, record.replace("k=rsa", "k=rsa; t=s")) == []


def test_short_and_long_keys_prove_nothing() -> None:
    for bits in (512, 768, 4104):
        try:
            key = rsa.generate_private_key(65_537, bits)
        except ValueError:  # the library makes none that is so short
            continue
        der = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        assert proven(dkim_signatures.sign(CONTENT, key=key), tag_lists.dkim_value(der)) == []


def test_work_is_bounded() -> None:
    message, record = signed()
    field = message[: -len(CONTENT)]
    assert proven(field * 20 + CONTENT, record) == ["sel"] * 5
    assert proven(field + b"X-Filler: " + b"x" * 70_000 + b"\r\n" + CONTENT, record) == []
    for filler in (b"\r\n" * 200_000, b" \t" * 200_000, b"\n\r" * 200_000):
        assert proven(message + filler, record) in ([], ["sel"])


@given(st.binary(max_size=300), st.integers(0, 1000))
def test_no_input_makes_it_fail(junk: bytes, place: int) -> None:
    for content in (junk, RFC_8463[:place] + junk + RFC_8463[place:], RFC_8463[:place]):
        message = dkim_verification.Message(content)
        message.values(b"from")
        for each in message.signatures(now=NOW):
            dkim_verification.is_proven(each, RFC_RECORDS.get(each.selector, ""))
            dkim_verification.is_proven(each, junk.decode("latin-1"))


def test_a_signature_says_what_it_covers_and_when_it_was_made() -> None:
    tags = [{"h": "From : to", "t": str(NOW)}, {"h": "from"}]
    found = [dkim_verification.Message(signed(**each)[0]).signatures(now=NOW)[0] for each in tags]
    assert [(each.names, each.signed_at) for each in found] == [
        (frozenset({b"from", b"to"}), NOW),
        (frozenset({b"from"}), None),
    ]


@pytest.mark.parametrize("junk", [b"X: y\nFrom: z\r\n", b"X: y\rFrom: z\r\n", b"X: y\n\r\n", b"x:\r\n" * 1_000])
def test_a_header_that_others_read_differently_has_no_fields(junk: bytes) -> None:
    assert dkim_verification.Message(junk + CONTENT).values(b"from") == []
    assert dkim_verification.Message(CONTENT + junk).values(b"from") != []


def test_only_a_prefix_is_searched_for_the_end_of_the_header() -> None:
    begin = b"From: a\r\n"
    filler = b"X: " + b"x" * (dkim_verification.MAX_HEADER_BYTES - len(begin) - 3)
    assert dkim_verification.Message(begin + filler).values(b"from") == [b"a"]
    assert dkim_verification.Message(begin + filler[:-2] + b"\r\n\r\n" + b"x" * 100).values(b"from") == []
    assert dkim_verification.Message(begin + filler[:-4] + b"\r\n\r\n" + b"x" * 100).values(b"from") == [b"a"]


def test_fields_are_read_unfolded() -> None:
    message = dkim_verification.Message(b"FROM : a\r\n b\r\nfrom:c\r\nfrom\r\n\r\nfrom: d\r\n")
    assert message.values(b"from") == [b"a b", b"c"]
    assert dkim_verification.Message(b"").values(b"from") == []
    assert dkim_verification.Message(b"\r\nFrom: x\r\n").values(b"from") == []
