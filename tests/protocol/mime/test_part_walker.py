"""The walk over the parts of a message; `test_preview_parser.py` and `test_report_parser.py` test it further."""

import email.message
import email.policy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.mime import file_names, part_walker

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


# Parameters of MIME fields are read in all the forms that programs write, and no value makes the reader fail.


@pytest.mark.parametrize(
    "value, first, parameters",
    [
        ("", "", {}),
        ("TEXT/Plain", "text/plain", {}),
        ('text/plain; Charset="utf-8"; format=flowed', "text/plain", {"charset": "utf-8", "format": "flowed"}),
        ("a ; x = 1;y=2", "a", {"x": "1", "y": "2"}),
        ('a; x="1;y=2"; z=3', "a", {"x": "1;y=2", "z": "3"}),
        ('a; x="never closed', "a", {"x": "never closed"}),
        ("a; x=1; x=2", "a", {"x": "1"}),
        (r'a; filename="C:\tmp\new.txt"', "a", {"filename": r"C:\tmp\new.txt"}),
        (r'a; filename="a\"b\\c"', "a", {"filename": r'a"b\c'}),
        ('a; filename="=?utf-8?q?=C3=BC.txt?="', "a", {"filename": "ü.txt"}),
        ('a; boundary="=?utf-8?q?b?="', "a", {"boundary": "=?utf-8?q?b?="}),
        ("a; filename*=utf-8'en'%C3%BC.txt; filename=u.txt", "a", {"filename": "ü.txt"}),
        ("a; filename=u.txt; filename*=iso-8859-1''%FC.txt", "a", {"filename": "ü.txt"}),
        ("a; filename*=no-such''%C3%BC", "a", {"filename": "ü"}),
        ("a; filename*=utf-8''%FF%zz", "a", {"filename": "\ufffd%zz"}),
        ("a; filename*1=b; filename*0=a; filename*3=d", "a", {"filename": "ab"}),
        ("a; filename*0*=utf-8''%C3; filename*1*=%BC; filename*2=%20", "a", {"filename": "ü%20"}),
        ("a; filename*1=lost", "a", {}),
        ("a; =x; ; b", "a", {}),
    ],
)
def test_parameters_are_read_as_people_write_them(value: str, first: str, parameters: dict[str, str]) -> None:
    assert part_walker.read_parameters(value) == (first, parameters)


def test_only_so_many_parameters_are_read() -> None:
    value = "a" + "".join(f"; p{number}=x" for number in range(1000))
    assert len(part_walker.read_parameters(value)[1]) == 200


@given(st.text(max_size=200) | st.text("a;=\"\\*'%0 ", max_size=60))
def test_no_value_makes_it_fail(value: str) -> None:
    first, parameters = part_walker.read_parameters(value)
    assert ";" not in first
    assert all("=" not in name for name in parameters)


@given(st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters='/\\"'), min_size=1, max_size=80))
def test_a_name_that_we_write_is_read_back(name: str) -> None:
    try:
        written = file_names.content_disposition("attachment", name)
    except ValueError:
        return  # the name is refused where it is written
    value = written.partition(":")[2].replace("\r\n", "")
    assert part_walker.read_parameters(value) == ("attachment", {"filename": name})


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=60))
def test_a_name_that_the_standard_library_writes_is_read_back(name: str) -> None:
    message = email.message.EmailMessage(policy=email.policy.SMTP)
    message.add_attachment(b"x", maintype="a", subtype="b", filename=name)
    (part,) = message.iter_attachments()
    head = part.as_bytes().partition(b"\r\n\r\n")[0].decode().replace("\r\n ", " ")
    (line,) = [line for line in head.split("\r\n") if line.startswith("Content-Disposition:")]
    assert part_walker.read_parameters(line.partition(":")[2])[1]["filename"] == name
