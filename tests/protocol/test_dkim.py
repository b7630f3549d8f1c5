"""What a signature covers: RFC 6376's own examples, a foreign implementation beside ours, and the ways to cheat."""

import base64
import hashlib
import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa, utils
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.dns import tag_lists
from postroad.protocol.mime import address, builder
from postroad.protocol.signatures import dkim
from tests import dkim_verifiers

MESSAGE = (
    b"From: Shop <shop@example.com>\r\n"
    b"To: ada@example.net\r\n"
    b"Subject: Your  order\r\n"
    b"\tis on its way \r\n"
    b"Date: Fri, 15 Jan 2027 08:00:00 +0000\r\n"
    b"Message-ID: <1@example.com>\r\n"
    b"X-Service-Tag: order\r\n"
    b"MIME-Version: 1.0\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n"
    b"\r\n"
    b"Hello  Ada, \r\n"
    b"\r\n"
    b"\tit is on its way.\r\n"
    b"\r\n"
)
# In the past: verifiers refuse signatures from the future.
SIGNED_AT = 1_700_000_000
# What can stand between the words of a body, the odd things included.
PIECES = [b" ", b"\t", b"\r\n", b"\r\n\r\n", b"a", b"bc", b".", b"\x0b", b"\xc3\xa9", b"=20"]


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def records(key: rsa.RSAPrivateKey) -> dict[str, str]:
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return {tag_lists.dkim_name("pr1", "example.com"): tag_lists.dkim_value(public)}


def signed(key: rsa.RSAPrivateKey, content: bytes) -> bytes:
    unsigned = prepare(content)
    value = key.sign(unsigned.digest, padding.PKCS1v15(), utils.Prehashed(hashes.SHA256()))
    return dkim.finish(unsigned, value) + content


def prepare(content: bytes) -> dkim.UnsignedField:
    return dkim.prepare(dkim.cover(content), domain="example.com", selector="pr1", signed_at=SIGNED_AT)


def tags(field: bytes) -> dict[str, str]:
    text = field.decode().removeprefix("DKIM-Signature:").replace("\r\n", "")
    pairs = (tag.partition("=") for tag in text.split(";"))
    return {name.strip(): re.sub(r"\s", "", value) for name, _, value in pairs}


def test_the_examples_of_the_rfc_come_out_as_it_says() -> None:
    # RFC 6376 section 3.4.5
    assert dkim.relaxed_head(b"A: X\r\nB : Y\t\r\n\tZ  ") == [(b"a", b"a:X\r\n"), (b"b", b"b:Y Z\r\n")]
    assert dkim.relaxed_body(b" C \r\nD \t E\r\n\r\n\r\n") == b" C\r\nD E\r\n"


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join))
def test_bodies_are_relaxed_as_a_foreign_implementation_does_it(body: bytes) -> None:
    # On the wire the last line has an end too, which is what a verifier sees.
    ended = body if body.endswith(b"\r\n") else body + b"\r\n"
    assert dkim.relaxed_body(body) == dkim_verifiers.dkimpy_relaxed_body(ended)


@given(st.lists(st.sampled_from([b" ", b"\t", b"\r\n ", b"\r\n\t", b"a", b":", b"B"]), max_size=20).map(b"".join))
def test_fields_are_relaxed_as_a_foreign_implementation_does_it(value: bytes) -> None:
    theirs = dkim_verifiers.dkimpy_relaxed_field(b"SubJect", value)
    assert dkim.relaxed_head(b"SubJect:" + value) == [(b"subject", theirs)]


def test_very_long_runs_of_blanks_and_empty_lines_take_no_time_to_speak_of() -> None:
    # A way that looks again from the beginning for each of them would not end today.
    assert dkim.relaxed_body(b"a" + b" " * 3_000_000 + b"\r\n" * 3_000_000) == b"a\r\n"
    assert dkim.relaxed_body(b"a" + b"\r\n" * 1_000_000 + b"b") == b"a" + b"\r\n" * 1_000_000 + b"b\r\n"


@pytest.mark.parametrize(
    "content",
    [
        b"From: shop@example.com\r\n\r\n",
        b"From: shop@example.com\r\n\r\n\r\n\r\n",
        b"From: shop@example.com\r\n\r\nno line end",
        b"From: shop@example.com\r\nReferences: <1@a>\r\nReferences: <2@a>\r\n\r\nx\r\n",
        b"From: shop@example.com\r\nCC: a@example.net\r\ncc: b@example.net\r\nSubject:\r\n\r\nx\r\n",
        b"from: shop@example.com\r\nSubject: gr\xc3\xbc\xc3\x9fe\r\n\r\n\xf0\x9f\x8e\x89\r\n",
        b"From: shop@example.com\r\n" + b"To: ada@example.net\r\n" * 40 + b"\r\nx\r\n",
    ],
)
def test_odd_messages_get_valid_signatures_too(key: rsa.RSAPrivateKey, records: dict[str, str], content: bytes) -> None:
    assert dkim_verifiers.dkimpy_accepts(signed(key, content), records)


def test_our_own_messages_get_valid_signatures(key: rsa.RSAPrivateKey, records: dict[str, str]) -> None:
    sender = address.parse("Bücher <shop@example.com>")
    for text in ("Grüße\n\n  mit Abstand \n\n\n", "plain", "x" * 5000, ""):
        content = builder.build(
            builder.Message(
                from_=sender,
                to=[address.parse("ada@example.net")] * 50,
                subject="Grüße " * 40,
                message_id="1@example.com",
                date=SIGNED_AT * 1_000_000,
                text=text,
                html=f"<p>\t{text}</p>",
                headers=[("List-Unsubscribe", "<https://example.com/u>")],
                attachments=[builder.Attachment(filename="a.bin", content=bytes(range(256)), content_type="image/png")],
            )
        )
        assert dkim_verifiers.dkimpy_accepts(signed(key, content), records)


def test_the_field_says_what_was_agreed_and_nothing_else() -> None:
    said = tags(prepare(MESSAGE).field)
    assert said == {
        "v": "1",
        "a": "rsa-sha256",
        "c": "relaxed/relaxed",
        "t": "1700000000",
        "d": "example.com",
        "s": "pr1",
        "bh": base64.b64encode(hashlib.sha256(dkim.relaxed_body(MESSAGE.partition(b"\r\n\r\n")[2])).digest()).decode(),
        "h": "from:from:to:to:cc:subject:subject:date:date:message-id:message-id:reply-to:"
        "mime-version:mime-version:content-type:content-type:list-unsubscribe:list-unsubscribe-post:list-id",
        "b": "",
    }


def test_what_feedback_loops_rely_on_is_covered_when_it_is_there() -> None:
    """Gmail believes a signed Feedback-ID only; RFC 9477 section 3.1.4 demands the other."""
    fields = b"Feedback-ID: a:b:c:sender\r\nCFBL-Address: fbl@example.com; report=arf\r\n"
    names = tags(prepare(fields + MESSAGE).field)["h"].split(":")
    assert names[-2:] == ["feedback-id", "cfbl-address"]


def test_the_ed25519_example_of_rfc_8463_comes_out_as_it_says() -> None:
    # RFC 8463 appendix A: the key is that of RFC 8032 section 7.1, test 1
    seed = base64.b64decode("nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")
    key = ed25519.Ed25519PrivateKey.from_private_bytes(seed)
    record = tag_lists.dkim_value(key.public_key().public_bytes_raw(), key_type="ed25519")
    assert record == "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    message = (
        b"From: Joe SixPack <joe@football.example.com>\r\nTo: Suzie Q <suzie@shopping.example.net>\r\n"
        b"Subject: Is dinner ready?\r\nDate: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n"
        b"Message-ID: <20030712040037.46341.5F8J@football.example.com>\r\n\r\n"
        b"Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n"
    )
    assert dkim.cover(message).body_hash == "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8="
    field = (
        b"DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n d=football.example.com; "
        b"i=@football.example.com;\r\n q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n subject : date : "
        b"message-id : from : subject : date;\r\n bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n b="
    )
    covered = b"".join(one for _, one in dkim.relaxed_head(message.partition(b"\r\n\r\n")[0] + b"\r\n" + field))
    signature = key.sign(hashlib.sha256(covered.removesuffix(b"\r\n")).digest())
    assert base64.b64encode(signature) == (
        b"/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw=="
    )


@dkim_verifiers.needs_opendkim
def test_an_ed25519_signature_covers_the_same_as_an_rsa_signature(tmp_path: Path) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    coverage = dkim.cover(MESSAGE)
    unsigned = dkim.prepare(
        coverage, domain="example.com", selector="pe1", signed_at=SIGNED_AT, algorithm="ed25519-sha256"
    )
    expected = tags(prepare(MESSAGE).field) | {"a": "ed25519-sha256", "s": "pe1"}
    assert tags(unsigned.field) == expected
    message = dkim.finish(unsigned, key.sign(unsigned.digest)) + MESSAGE
    record = tag_lists.dkim_value(key.public_key().public_bytes_raw(), key_type="ed25519")
    published = {tag_lists.dkim_name("pe1", "example.com"): record}
    assert dkim_verifiers.opendkim_accepts(message, published, tmp_path)
    assert not dkim_verifiers.opendkim_accepts(message.replace(b"Ada", b"Eve"), published, tmp_path)


def test_lines_of_the_field_are_short_and_folded_only_where_that_is_allowed(key: rsa.RSAPrivateKey) -> None:
    many = b"From: shop@example.com\r\n" + b"References: <1@a>\r\n" * 100
    field = signed(key, many + b"\r\n").removesuffix(many + b"\r\n")
    assert field.endswith(b"\r\n")
    lines = field.removesuffix(b"\r\n").split(b"\r\n")
    assert max(map(len, lines)) <= 78
    assert all(line.startswith(b" ") and line.strip() for line in lines[1:])


@pytest.mark.parametrize(
    "name",
    [
        *("From", "To", "Cc", "Subject", "Date", "Message-ID", "Reply-To", "MIME-Version", "Content-Type"),
        *("List-Unsubscribe", "List-Unsubscribe-Post", "List-Id"),
    ],
)
def test_no_field_that_a_reader_sees_or_a_mailbox_provider_acts_on_can_be_added(
    key: rsa.RSAPrivateKey, records: dict[str, str], name: str
) -> None:
    message = signed(key, MESSAGE)
    head, _, body = message.partition(b"\r\n\r\n")
    added = f"{name}: mallory@example.org".encode()
    assert not dkim_verifiers.dkimpy_accepts(b"%b\r\n%b\r\n\r\n%b" % (head, added, body), records)
    assert not dkim_verifiers.dkimpy_accepts(b"%b\r\n%b" % (added, message), records)


@pytest.mark.parametrize(
    "before, after",
    [
        (b"Ada,", b"Eve,"),
        (b"Your  order", b"Your debt"),
        (b"charset=utf-8", b"charset=utf-7"),
        (b"d=example.com", b"d=example.org"),
        (b"t=1700000000", b"t=1700000001"),
        (b":subject:subject:", b":subject:"),
        (b"it is on its way.\r\n", b"it is on its way.\r\n\r\nPS: or not\r\n"),
    ],
)
def test_a_change_on_the_way_is_noticed(
    key: rsa.RSAPrivateKey, records: dict[str, str], before: bytes, after: bytes
) -> None:
    message = signed(key, MESSAGE)
    assert before in message
    assert not dkim_verifiers.dkimpy_accepts(message.replace(before, after), records)


@pytest.mark.parametrize(
    "before, after",
    [
        (b"Hello  Ada, \r\n", b"Hello Ada,\r\n"),
        (b"Subject: Your  order\r\n\tis on", b"SUBJECT:  Your order is\r\n on"),
        (b"X-Service-Tag: order\r\n", b""),
        (b"its way.\r\n\r\n", b"its way.\r\n\r\n\r\n\r\n"),
    ],
)
def test_what_hosts_on_the_way_may_change_does_no_harm(
    key: rsa.RSAPrivateKey, records: dict[str, str], before: bytes, after: bytes
) -> None:
    message = signed(key, MESSAGE)
    assert before in message
    changed = b"Received: from a by b\r\n" + message.replace(before, after)
    assert dkim_verifiers.dkimpy_accepts(changed, records)


def test_a_message_without_header_or_without_body_does_not_break_it() -> None:
    sealed = (
        "from:to:cc:subject:date:message-id:reply-to:mime-version:content-type:list-unsubscribe:"
        "list-unsubscribe-post:list-id"
    )
    assert tags(prepare(b"\r\nFrom: in the body\r\n").field)["h"] == sealed
    assert tags(prepare(b"").field)["h"] == sealed
    assert tags(prepare(b"From: a@example.com").field)["h"] == f"from:{sealed}"
    assert tags(prepare(b"no colon here\r\nFrom: a@example.com\r\n\r\n").field)["h"] == f"from:{sealed}"
