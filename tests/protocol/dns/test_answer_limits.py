"""A DNS answer is parsed only if its size, records, labels and strings are within their limits."""

import struct

import pytest

from postroad.protocol.dns import answer_limits

QUESTION = b"\x07example\x03org\x00" + struct.pack("!HH", 15, 1)
POINTER = b"\xc0\x0c"  # to example.org of the question
TOO_LARGE = "the answer has more than 16384 bytes"
TOO_MANY = "the answer has more than 256 records"
TOO_DEEP = "the answer has more than 1500 labels and strings"


def record(kind: int, data: bytes, name: bytes = b"\x00") -> bytes:
    return name + struct.pack("!HHIH", kind, 1, 300, len(data)) + data


def answer(*records: bytes, sections: tuple[int, int, int] | None = None) -> bytes:
    counts = sections or (len(records), 0, 0)
    return struct.pack("!6H", 1, 0x8180, 1, *counts) + QUESTION + b"".join(records)


def text(parts: int) -> bytes:
    """An answer with so many parts: two labels of the question, and strings."""
    return answer(record(16, b"\x00" * (parts - 2)))


def test_an_ordinary_answer_is_parsed() -> None:
    mail_host = struct.pack("!H", 10) + b"\x02mx" + POINTER
    assert answer_limits.why_refused(answer(record(15, mail_host, POINTER))) is None


def test_bytes_are_limited() -> None:
    head = len(answer(record(99, b"")))
    assert answer_limits.why_refused(answer(record(99, bytes(16_384 - head)))) is None
    assert answer_limits.why_refused(answer(record(99, bytes(16_385 - head)))) == TOO_LARGE


@pytest.mark.parametrize("sections", [(255, 0, 0), (200, 40, 15)])
def test_records_of_all_sections_are_limited(sections: tuple[int, int, int]) -> None:
    records = [record(1, bytes(4))] * 256
    assert answer_limits.why_refused(answer(*records[1:], sections=sections)) is None
    more = (sections[0], sections[1], sections[2] + 1)
    assert answer_limits.why_refused(answer(*records, sections=more)) == TOO_MANY


def test_the_strings_of_texts_are_limited() -> None:
    assert answer_limits.why_refused(text(1_500)) is None
    assert answer_limits.why_refused(text(1_501)) == TOO_DEEP


@pytest.mark.parametrize(
    "kind, before", [(2, 0), (5, 0), (12, 0), (15, 2), (39, 0)], ids=["NS", "CNAME", "PTR", "MX", "DNAME"]
)
def test_the_labels_of_names_in_data_are_limited(kind: int, before: int) -> None:
    deep = record(kind, bytes(before) + b"\x01a" * 106 + b"\x00")
    rest = b"\x01a" * 14 + b"\x00"
    # Two labels of the question, and 14 * 106 + 14.
    assert answer_limits.why_refused(answer(*[deep] * 14, record(kind, bytes(before) + rest))) is None
    assert answer_limits.why_refused(answer(*[deep] * 14, record(kind, bytes(before) + b"\x01b" + rest))) == TOO_DEEP


def test_both_names_of_a_start_of_authority_are_counted() -> None:
    names = (b"\x01a" * 107 + b"\x00") * 2
    start = record(6, names + bytes(20))
    assert answer_limits.why_refused(answer(*[start] * 7)) is None
    assert answer_limits.why_refused(answer(*[start] * 8)) == TOO_DEEP


def test_a_pointer_counts_with_the_labels_that_it_leads_to() -> None:
    # Two labels of the question, and three parts each for the owner and the host of a record: 2 + 249 * 6 = 1496.
    mail_host = record(15, bytes(2) + POINTER, POINTER)
    assert answer_limits.why_refused(answer(*[mail_host] * 249)) is None
    assert answer_limits.why_refused(answer(*[mail_host] * 250)) == TOO_DEEP


def test_pointers_that_lead_nowhere_end() -> None:
    loop = struct.pack("!H", 0xC000 + len(answer()))
    assert answer_limits.why_refused(answer(record(1, bytes(4), loop))) == TOO_DEEP


@pytest.mark.parametrize("wire", [b"", bytes(11), answer(sections=(1, 0, 0)), answer(record(15, b"\x00\x01\x05ab"))])
def test_what_is_malformed_is_left_to_the_parser(wire: bytes) -> None:
    assert answer_limits.why_refused(wire) is None
