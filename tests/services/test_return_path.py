"""Return paths: what was made is read again, in any case of letters, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol import address
from postroad.services import return_path

KEY = b"a key of the tests, 32 bytes long"
MESSAGE = "em_" + "0123456789abcdef0123456789ab"
IDS = st.text("0123456789abcdef", min_size=28, max_size=28).map("em_{}".format)


@given(IDS)
def test_an_address_names_its_message_in_any_case(message_id: str) -> None:
    written = return_path.address(KEY, message_id=message_id, domain="bounce.example.com")
    assert return_path.read(KEY, written) == message_id
    assert return_path.read(KEY, written.upper()) == message_id
    assert return_path.read(KEY, written.title()) == message_id


def test_it_is_an_address_that_every_host_takes() -> None:
    written = return_path.address(KEY, message_id=MESSAGE, domain="example.com")
    assert address.parse(written).address == written
    assert len(written.partition("@")[0]) == 60
    assert written.startswith("bounces+0123456789abcdef0123456789ab")
    assert written.endswith("@example.com")


def test_the_domain_is_not_part_of_the_token() -> None:
    written = return_path.address(KEY, message_id=MESSAGE, domain="example.com")
    assert return_path.read(KEY, written.replace("example.com", "example.org")) == MESSAGE


def test_another_key_makes_other_tokens_and_reads_none_of_ours() -> None:
    other = KEY[::-1]
    written = return_path.address(KEY, message_id=MESSAGE, domain="example.com")
    assert return_path.address(other, message_id=MESSAGE, domain="example.com") != written
    assert return_path.read(other, written) is None


@given(st.integers(0, 51), st.sampled_from("0123456789abcdef"))
def test_one_wrong_digit_is_noticed(position: int, digit: str) -> None:
    written = return_path.address(KEY, message_id=MESSAGE, domain="example.com")
    place = len(return_path.LOCAL_PREFIX) + position
    wrong = written[:place] + digit + written[place + 1 :]
    assert (return_path.read(KEY, wrong) == MESSAGE) == (wrong == written)


TOKEN = return_path.address(KEY, message_id=MESSAGE, domain="x").partition("@")[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        "bounces+@example.com",
        "ada@example.com",
        TOKEN,
        f"{TOKEN}@",
        f"{TOKEN}0@example.com",
        f"{TOKEN[:-1]}@example.com",
        f" {TOKEN}@example.com",
        f"x{TOKEN}@example.com",
        f"{TOKEN}@a@b",
        f"{TOKEN[:-1]}é@example.com",
        TOKEN.replace("s+", "ſ+") + "@example.com",
        "bounces+" + "٣" * 52 + "@example.com",
        "bounces+" + "0" * 100_000 + "@example.com",
    ],
)
def test_whatever_is_not_ours_names_nothing(text: str) -> None:
    assert return_path.read(KEY, text) is None


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    assert return_path.read(KEY, text) is None
