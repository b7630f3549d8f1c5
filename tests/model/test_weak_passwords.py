"""Weak passwords: common ones and what people do to them, patterns, and one's own address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model.people import login_rules

COMMON = {"password", "dragon", "letmein", "iloveyou", "q1w2e3r4t5"}


@pytest.mark.parametrize(
    "password",
    [
        "password",
        "PASSWORD",
        "password123",
        "2024Password!",
        "P@ssw0rd2024",
        "Passw0rd!!",
        "p455w0rd",
        "passwordpassword",
        "Dragon-12345",
        "!letmein!",
        "1l0vey0u99",
        "Q1w2e3r4t5",
        "aaaaaaaaaa",
        "1212121212",
        "abcabcabcabc",
        "kq.1xkq.1x",
        "xyz.!xyz.!xy",
        "1234567890",
        "0987654321",
        "qwertyuiop",
        "QWERTZuiop12",
        "azertyuiop",
        "poiuytrewq",
        "1qaz2wsx3edc",
        "qweasdzxc123",
        "abcdefghij1!",
        "12345678abc",
        "12345678xk2",
    ],
)
def test_what_is_common_or_a_pattern(password: str) -> None:
    assert login_rules.is_common_password(password, COMMON)


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery",
        "kX9#vLw2Qz",
        "dragon8471936",  # seven more characters
        "my dragon is red",
        "mango-tree-17",
        "hqbtkahqbtka",
        "horsesixhorse",
        "1234 is not enough",
        "пароль из слов",
        "p4 and more p4",
    ],
)
def test_what_is_neither(password: str) -> None:
    assert not login_rules.is_common_password(password, COMMON)


@pytest.mark.parametrize(
    "password",
    [
        "jo.smith@example.com",
        "JO.SMITH@EXAMPLE.COM1",
        "smith12345",
        "Jo.Smith2024",
        "example-2024",
        "smithexample",
        "12smith345",
    ],
)
def test_what_is_little_more_than_the_address(password: str) -> None:
    assert login_rules.is_own_address(password, "jo.smith@example.com")


@pytest.mark.parametrize(
    "password", ["the horse of jo.smith", "smith-and-sons", "jojojojojo", "come on then", "comcomcomcom"]
)
def test_a_part_of_the_address_may_be_a_part_of_the_password(password: str) -> None:
    assert not login_rules.is_own_address(password, "jo.smith@example.com")


@given(st.text(max_size=256), st.text(max_size=64))
def test_any_text_has_an_answer(password: str, email: str) -> None:
    login_rules.is_common_password(password, COMMON)
    login_rules.is_own_address(password, email)
