"""Parameters of MIME fields are read in all the forms that programs write, and no value makes the reader fail."""

import email.message
import email.policy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.mime import file_names
from postroad.protocol.mime import part_walker as mime_parameters


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
    assert mime_parameters.read_parameters(value) == (first, parameters)


def test_only_so_many_parameters_are_read() -> None:
    value = "a" + "".join(f"; p{number}=x" for number in range(1000))
    assert len(mime_parameters.read_parameters(value)[1]) == 200


@given(st.text(max_size=200) | st.text("a;=\"\\*'%0 ", max_size=60))
def test_no_value_makes_it_fail(value: str) -> None:
    first, parameters = mime_parameters.read_parameters(value)
    assert ";" not in first
    assert all("=" not in name for name in parameters)


@given(st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters='/\\"'), min_size=1, max_size=80))
def test_a_name_that_we_write_is_read_back(name: str) -> None:
    try:
        written = file_names.content_disposition("attachment", name)
    except ValueError:
        return  # the name is refused where it is written
    value = written.partition(":")[2].replace("\r\n", "")
    assert mime_parameters.read_parameters(value) == ("attachment", {"filename": name})


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=60))
def test_a_name_that_the_standard_library_writes_is_read_back(name: str) -> None:
    message = email.message.EmailMessage(policy=email.policy.SMTP)
    message.add_attachment(b"x", maintype="a", subtype="b", filename=name)
    (part,) = message.iter_attachments()
    head = part.as_bytes().partition(b"\r\n\r\n")[0].decode().replace("\r\n ", " ")
    (line,) = [line for line in head.split("\r\n") if line.startswith("Content-Disposition:")]
    assert mime_parameters.read_parameters(line.partition(":")[2])[1]["filename"] == name
