"""Cookies as they are written and read."""

import pytest

from postroad.dashboard.framework import cookies
from postroad.web import routing


def read(field: str, *, is_secure: bool = False) -> str | None:
    return cookies.read(routing.Headers([(b"cookie", field.encode("latin-1"))]), cookies.SESSION, is_secure=is_secure)


@pytest.mark.parametrize("field", ["postroad=x", "a=b; postroad=x", "postroad=x;a=b", " postroad=x ; é=1"])
def test_a_cookie_is_found_among_others(field: str) -> None:
    assert read(field) == "x"


@pytest.mark.parametrize(
    "field", ["", ";", "postroad", "Postroad=x", "xpostroad=x", "postroad=x; postroad=y", "a=postroad=x"]
)
def test_what_is_not_the_cookie_is_none(field: str) -> None:
    assert read(field) in (None, "")


def test_no_field_has_no_cookie() -> None:
    assert cookies.read(routing.Headers([]), cookies.SESSION, is_secure=False) is None


def test_behind_tls_only_the_name_that_no_neighbour_can_set_counts() -> None:
    assert read("__Host-postroad=x", is_secure=True) == "x"
    assert read("postroad=x", is_secure=True) is None
    assert read("__Host-postroad=x") is None


def test_a_cookie_is_kept_from_scripts_and_from_other_sites() -> None:
    assert cookies.write("a", "b", is_secure=False, seconds=5) == (
        "Set-Cookie",
        "a=b; Path=/; Max-Age=5; HttpOnly; SameSite=Lax",
    )
    assert cookies.write("a", "b", is_secure=True, seconds=5)[1].startswith("__Host-a=b; Path=/;")
    assert cookies.write("a", "b", is_secure=True, seconds=5)[1].endswith("; Secure")
    assert "Max-Age=0" in cookies.remove("a", is_secure=False)[1]


@pytest.mark.parametrize("text", ["Done.", "é☃; a=b\r\nSet-Cookie: x=y", '"quoted", and more', ""])
def test_a_notice_comes_back_as_it_was_and_never_leaves_its_cookie(text: str) -> None:
    value = cookies.encode_notice(cookies.Notice(text))
    assert value.isascii()
    assert not set(value) & set(' ",;\\\r\n')
    assert cookies.decode_notice(value) == cookies.Notice(text)


@pytest.mark.parametrize("kind", cookies.KINDS)
def test_a_notice_is_as_good_as_its_kind_says(kind: str) -> None:
    value = cookies.encode_notice(cookies.Notice("Well! Or not?", kind, "a-b.c_d"))
    assert cookies.decode_notice(value) == ("Well! Or not?", kind, "a-b.c_d")


@pytest.mark.parametrize(
    "value", ["", "bad", "Done.", "!bad", "evil!Done.", "bad%21Done.", "good bad!x", "x!bad!y", "!!", "x!y!z!"]
)
def test_a_kind_that_nobody_knows_is_the_usual_one(value: str) -> None:
    assert cookies.decode_notice(value).kind == cookies.GOOD


def test_a_notice_is_bounded_whoever_wrote_it() -> None:
    assert len(cookies.decode_notice(cookies.encode_notice(cookies.Notice("x" * 5_000))).text) == 400
    assert len(cookies.decode_notice("y" * 5_000).text) == 400
    assert cookies.decode_notice("%ff%").text == "\ufffd%"
    # What is too long for a cookie cannot be undone.
    assert cookies.encode_notice(cookies.Notice("Done.", undo="x" * 3_000)) == "good!Done."
