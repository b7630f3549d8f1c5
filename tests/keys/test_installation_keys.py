"""Secrets: beyond guessing, checked before the store is asked, and derived so that no use betrays another."""

import dataclasses
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.keys import installation_keys

INSTALLATION_KEY = b"an installation key of the tests, long enough"


def test_an_api_key_looks_like_one() -> None:
    key = installation_keys.new_api_key()
    assert re.fullmatch(r"pr_live_[0-9A-Za-z]{36}", key)
    assert installation_keys.is_api_key(key)


def test_no_two_are_alike() -> None:
    assert len({installation_keys.new_api_key() for _ in range(1000)}) == 1000
    assert len({installation_keys.random_text(20) for _ in range(1000)}) == 1000


def test_a_secret_holds_more_than_112_random_bits() -> None:
    assert len(installation_keys.ALPHABET) == len(set(installation_keys.ALPHABET)) == 62
    assert len(installation_keys.ALPHABET) ** 30 > 2**112


@given(st.integers(0, 43), st.sampled_from(installation_keys.ALPHABET + "_ é\0"))
def test_one_wrong_character_is_noticed(position: int, character: str) -> None:
    key = "pr_live_" + 30 * "x"
    key += installation_keys.checksum(key)
    wrong = key[:position] + character + key[position + 1 :]
    assert installation_keys.is_api_key(wrong) == (wrong == key)


def test_exchanged_neighbours_are_noticed() -> None:
    key = "pr_live_" + "abcdefghijklmnopqrstuvwxyz0123"
    key += installation_keys.checksum(key)
    for position in range(8, len(key) - 1):
        wrong = key[:position] + key[position + 1] + key[position] + key[position + 2 :]
        assert installation_keys.is_api_key(wrong) == (wrong == key)


@pytest.mark.parametrize("text", ["", "pr_live_", "pr_live_" + 36 * "é", "pr_live_" + 36 * "\udcff", "x" * 100_000])
def test_odd_texts_are_no_keys(text: str) -> None:
    assert not installation_keys.is_api_key(text)


def test_a_key_cut_short_or_grown_is_noticed() -> None:
    key = installation_keys.new_api_key()
    assert not installation_keys.is_api_key(key[:-1])
    assert not installation_keys.is_api_key(key + "0")
    assert not installation_keys.is_api_key(key + "\n")
    assert not installation_keys.is_api_key("sk" + key[2:])


def test_of_an_api_key_only_its_sha256_is_kept() -> None:
    assert installation_keys.hash_api_key("pr_live_x") == hashlib.sha256(b"pr_live_x").digest()


def test_derived_keys_follow_from_the_installation_key_alone() -> None:
    keys = installation_keys.Keys.derive(INSTALLATION_KEY)
    assert keys == installation_keys.Keys.derive(INSTALLATION_KEY)
    assert keys != installation_keys.Keys.derive(INSTALLATION_KEY + b".")
    *derived, previous = dataclasses.astuple(keys)
    assert previous == ()
    assert all(len(key) == 32 and key not in INSTALLATION_KEY for key in derived)
    assert len(set(derived)) == len(derived) > 1


def test_derived_keys_do_not_show_where_they_are_printed() -> None:
    keys = installation_keys.Keys.derive(INSTALLATION_KEY)
    assert repr(keys.token)[2:12] not in repr(keys)
    assert repr(keys) == "Keys()"
