"""Return paths: what was made is read again, in any case of letters, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.mail import return_path
from postroad.protocol.mime import address

KEY = b"a key of the tests, 32 bytes long"
MESSAGE = "em_" + "0123456789abcdef0123456789ab"
RECIPIENTS = [f"rcp_00604ca58ccd{place:02x}{'5' * 14}" for place in (254, 255)]
IDS = st.text("0123456789abcdef", min_size=28, max_size=28)


def written_for(recipient_id: str = RECIPIENTS[0], *, key: bytes = KEY) -> str:
    return return_path.address(key, message_id=MESSAGE, recipient_id=recipient_id, domain="example.com")


def read(text: str, *, key: bytes = KEY) -> str | None:
    """The message that an address names."""
    found = return_path.read(key, text)
    return found.message_id if found else None


@given(IDS, IDS)
def test_an_address_names_its_message_and_recipient_in_any_case(message: str, recipient: str) -> None:
    ids = {"message_id": f"em_{message}", "recipient_id": f"rcp_{recipient}"}
    written = return_path.address(KEY, **ids, domain="bounce.example.com")
    for text in (written, written.upper(), written.title()):
        found = return_path.read(KEY, text)
        assert found is not None
        assert (found.message_id, found.recipient([ids["recipient_id"]])) == (ids["message_id"], ids["recipient_id"])


def test_a_token_means_one_recipient_of_its_message() -> None:
    for recipient_id in RECIPIENTS:
        found = return_path.read(KEY, written_for(recipient_id))
        assert found is not None
        assert found.recipient(RECIPIENTS) == recipient_id
        assert found.recipient([]) is None
        assert found.recipient(["rcp_" + "0" * 28]) is None
        assert found.recipient([recipient_id, recipient_id[:18] + "6" * 14]) is None


def test_it_is_an_address_that_every_host_takes() -> None:
    written = written_for()
    assert address.parse(written).address == written
    assert len(written.partition("@")[0]) == 62
    assert written.startswith("bounces+0123456789abcdef0123456789abcdfe")
    assert written.endswith("@example.com")


def test_the_domain_is_not_part_of_the_token() -> None:
    assert read(written_for().replace("example.com", "example.org")) == MESSAGE


def test_another_key_makes_other_tokens_and_reads_none_of_ours() -> None:
    other = KEY[::-1]
    assert written_for(key=other) != written_for()
    assert read(written_for(), key=other) is None


@given(position=st.integers(0, 53), digit=st.sampled_from("0123456789abcdef"))
def test_one_wrong_digit_is_noticed(position: int, digit: str) -> None:
    written = written_for()
    place = len(return_path.LOCAL_PREFIX) + position
    wrong = written[:place] + digit + written[place + 1 :]
    assert (read(wrong) == MESSAGE) == (wrong == written)


def test_a_recipient_cannot_make_the_token_of_another_from_its_own() -> None:
    own, other = written_for(RECIPIENTS[0]), written_for(RECIPIENTS[1])
    assert read(own.replace("abcdfe", "abcdff")) is None
    assert own[:42] != other[:42]
    for token in (own[:8] + own[8:36] + own[40:64] + "@example.com", own[:60] + "@example.com"):
        assert read(token) is None


TOKEN = written_for().partition("@")[0]


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
        f"{TOKEN[:-2]}@example.com",
        f" {TOKEN}@example.com",
        f"x{TOKEN}@example.com",
        f"{TOKEN}@a@b",
        f"{TOKEN[:-1]}é@example.com",
        TOKEN.replace("s+", "ſ+") + "@example.com",
        "bounces+" + "٣" * 54 + "@example.com",
        "bounces+" + "0" * 100_000 + "@example.com",
    ],
)
def test_whatever_is_not_ours_names_nothing(text: str) -> None:
    assert return_path.read(KEY, text) is None


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    assert return_path.read(KEY, text) is None
