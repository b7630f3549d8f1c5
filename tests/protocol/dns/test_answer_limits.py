"""A DNS answer is parsed only if its size and the work that it is are within their limits."""

import struct

import pytest

from postroad.protocol.dns import answer_limits

QUESTION = b"\x07example\x03org\x00" + struct.pack("!HH", 15, 1)
POINTER = b"\xc0\x0c"  # to example.org of the question
TOO_LARGE = "the answer has more than 16384 bytes"
TOO_LONG = "the answer would take too long to parse"


def record(kind: int, data: bytes, name: bytes = b"\x00") -> bytes:
    return name + struct.pack("!HHIH", kind, 1, 300, len(data)) + data


def answer(*records: bytes, sections: tuple[int, int, int] | None = None) -> bytes:
    counts = sections or (len(records), 0, 0)
    return struct.pack("!6H", 1, 0x8180, 1, *counts) + QUESTION + b"".join(records)


def test_an_ordinary_answer_is_parsed() -> None:
    mail_host = struct.pack("!H", 10) + b"\x02mx" + POINTER
    assert answer_limits.why_refused(answer(record(15, mail_host, POINTER))) is None


def test_bytes_are_limited() -> None:
    head = len(answer(record(48, b"")))
    assert answer_limits.why_refused(answer(record(48, bytes(16_384 - head)))) is None
    assert answer_limits.why_refused(answer(record(48, bytes(16_385 - head)))) == TOO_LARGE


@pytest.mark.parametrize("sections", [(190, 0, 0), (150, 30, 10)])
def test_records_of_all_sections_are_limited(sections: tuple[int, int, int]) -> None:
    records = [record(1, bytes(4), POINTER)] * 191
    # 150 for a record, and 9 for a pointer to two labels.
    assert answer_limits.why_refused(answer(*records[:188], sections=(sections[0] - 2, *sections[1:]))) is None
    assert answer_limits.why_refused(answer(*records[:190], sections=sections)) == TOO_LONG


def test_the_strings_of_texts_are_limited() -> None:
    # 4 for the question and 150 for the record.
    assert answer_limits.why_refused(answer(record(16, b"\x00" * 1_865))) is None
    assert answer_limits.why_refused(answer(record(16, b"\x00" * 1_866))) == TOO_LONG


@pytest.mark.parametrize(
    "kind, before",
    [(2, 0), (5, 0), (12, 0), (15, 2), (39, 0), (46, 18), (47, 0)],
    ids=["NS", "CNAME", "PTR", "MX", "DNAME", "RRSIG", "NSEC"],
)
def test_the_labels_of_names_in_data_are_limited(kind: int, before: int) -> None:
    deep = record(kind, bytes(before) + b"\x01a" * 120 + b"\x00")
    assert answer_limits.why_refused(answer(*[deep] * 2)) is None
    assert answer_limits.why_refused(answer(*[deep] * 3)) == TOO_LONG


def test_both_names_of_a_start_of_authority_are_counted() -> None:
    start = record(6, (b"\x01a" * 120 + b"\x00") * 2 + bytes(20))
    assert answer_limits.why_refused(answer(start)) is None
    assert answer_limits.why_refused(answer(start, start)) == TOO_LONG


def test_a_pointer_counts_with_the_labels_that_it_leads_to() -> None:
    # 9 for the owner and 9 for the host of a record.
    mail_host = record(15, bytes(2) + POINTER, POINTER)
    assert answer_limits.why_refused(answer(*[mail_host] * 178)) is None
    assert answer_limits.why_refused(answer(*[mail_host] * 179)) == TOO_LONG


def test_a_reverse_name_of_ipv6_is_parsed() -> None:
    name = b"".join(b"\x01" + digit for digit in [b"f"] * 32) + b"\x03ip6\x04arpa\x00"
    assert answer_limits.why_refused(answer(record(12, b"\x02mx" + POINTER, name))) is None


def test_options_are_limited() -> None:
    assert answer_limits.why_refused(answer(record(41, bytes(2_900)))) is None
    assert answer_limits.why_refused(answer(record(41, bytes(3_000)))) == TOO_LONG


def test_a_record_that_was_not_asked_for_is_refused() -> None:
    of_other_class = b"\x00" + struct.pack("!HHIH", 1, 3, 300, 4) + bytes(4)
    assert answer_limits.why_refused(answer(record(33, bytes(8)))) == "the answer has a record of type 33 and class 1"
    assert answer_limits.why_refused(answer(of_other_class)) == "the answer has a record of type 1 and class 3"


def test_pointers_that_lead_nowhere_end() -> None:
    loop = struct.pack("!H", 0xC000 + len(answer()))
    assert answer_limits.why_refused(answer(record(1, bytes(4), loop))) == TOO_LONG


@pytest.mark.parametrize("wire", [b"", bytes(11), answer(sections=(1, 0, 0)), answer(record(15, b"\x00\x01\x05ab"))])
def test_what_is_malformed_is_left_to_the_parser(wire: bytes) -> None:
    assert answer_limits.why_refused(wire) is None
