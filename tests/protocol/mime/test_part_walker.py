"""The walk over the parts of a message; `test_preview_parser.py` and `test_report_parser.py` test it further."""

import pytest

from postroad.protocol.mime import part_walker

BOUNDS = part_walker.Bounds(
    header_octets=1_000,
    part_header_octets=100,
    fields=10,
    part_fields=5,
    depth=2,
    parts=3,
    delimiter_lines=8,
    strict_types=True,
)


def multipart(*parts: bytes, subtype: bytes = b"mixed", boundary: bytes = b"b") -> bytes:
    line = b"--" + boundary
    head = b"Content-Type: multipart/" + subtype + b"; boundary=" + boundary + b"\r\n\r\n"
    return head + b"".join(line + b"\r\n" + part + b"\r\n" for part in parts) + line + b"--\r\n"


def leaves(content: bytes, bounds: part_walker.Bounds = BOUNDS) -> tuple[list[tuple[str, bytes]], bool]:
    walker = part_walker.Walker(content, bounds)
    found = [(leaf.path, content[leaf.body : leaf.end]) for leaf in walker.leaves()]
    return found, walker.truncated


def test_leaves_come_in_order_with_their_paths() -> None:
    inner = multipart(b"\r\none", b"\r\ntwo", boundary=b"c")
    assert leaves(multipart(inner, b"\r\nthree")) == ([("1.1", b"one"), ("1.2", b"two"), ("2", b"three")], False)
    assert leaves(b"Subject: x\n\ntext") == ([("", b"text")], False)


@pytest.mark.parametrize("strict, paths", [(True, [""]), (False, ["1"])])
def test_a_multipart_with_a_malformed_subtype_is_opened_unless_types_are_strict(
    *, strict: bool, paths: list[str]
) -> None:
    bounds = part_walker.Bounds(
        header_octets=1_000,
        part_header_octets=100,
        fields=10,
        part_fields=5,
        depth=2,
        parts=3,
        delimiter_lines=8,
        strict_types=strict,
    )
    found, _ = leaves(multipart(b"\r\none", subtype=b"mi xed"), bounds)
    assert [path for path, _ in found] == paths


@pytest.mark.parametrize(
    "content, count",
    [
        (multipart(*[b"\r\nx"] * 4), 3),
        (multipart(multipart(multipart(b"\r\nx", boundary=b"d"), boundary=b"c")), 1),
        (multipart(b"\r\n" + b"--\r\n" * 8), 1),
        (multipart(b"A: " + b"x" * 100 + b"\r\n\r\nx"), 1),
        (b"A: x\r\n" * 10 + multipart(b"\r\nx"), 1),
        (multipart(b"A: x\r\n" * 6 + b"\r\nx"), 1),
        (b"A: " + b"x" * 1_000, 1),
    ],
)
def test_what_exceeds_a_bound_is_left_out_and_reported(content: bytes, count: int) -> None:
    found, truncated = leaves(content)
    assert len(found) == count
    assert truncated


def test_fields_are_unfolded_and_the_first_of_a_name_is_taken() -> None:
    root = part_walker.Walker(b"Subject: a\r\n b\r\nSUBJECT: c\r\nno field\r\n\r\n", BOUNDS).root
    assert root.fields == [("Subject", "a b"), ("SUBJECT", "c")]
    assert (root.first("subject"), root.first("to")) == ("a b", "")
