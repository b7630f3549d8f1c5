"""Passwords: hashed in a few threads, proven once, the same for a name that nobody has."""

import asyncio
from collections.abc import AsyncIterator
from importlib import resources

import argon2
import pytest

from postroad import errors
from postroad.services import people
from postroad.services.people import passwords
from tests.services.people.argon_watch import Argon


async def verify(hasher: passwords.Passwords, password: str, password_hash: str) -> bool:
    return await hasher.find(password, [password_hash]) is not None


class Ticks:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
async def hasher(ticks: Ticks) -> AsyncIterator[passwords.Passwords]:
    made = passwords.Passwords(2, clock=ticks)
    yield made
    await made.close()


@pytest.mark.usefixtures("real_passwords")
async def test_the_hash_is_argon2id_with_the_documented_cost_and_a_salt(hasher: passwords.Passwords) -> None:
    first, second = await hasher.hash("correct horse"), await hasher.hash("correct horse")
    assert first.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert first != second


async def test_two_ways_of_writing_one_letter_are_one_password(hasher: passwords.Passwords) -> None:
    password_hash = await hasher.hash("caf\u00e9 caf\u00e9")
    assert await verify(hasher, "cafe\u0301 cafe\u0301", password_hash)


async def test_argon2_runs_once_for_a_right_pair_and_every_time_for_a_wrong_one(
    hasher: passwords.Passwords, argon: Argon
) -> None:
    password_hash, other_hash = await hasher.hash("correct horse"), await hasher.hash("another horse")
    for _ in range(3):
        assert await verify(hasher, "correct horse", password_hash)
    assert argon.count == 1
    for _ in range(2):
        assert not await verify(hasher, "wrong horse", password_hash)
        assert not await verify(hasher, "correct horse", other_hash)
    assert argon.count == 5
    assert hasher.is_proven("correct horse", password_hash)
    assert not hasher.is_proven("wrong horse", password_hash)
    assert not hasher.is_proven("correct horse", other_hash)
    assert "horse" not in repr([vars(hasher), vars(hasher._proofs), vars(hasher._jobs)])


async def test_a_proof_ends_ten_minutes_after_its_last_use(hasher: passwords.Passwords, ticks: Ticks) -> None:
    password_hash = await hasher.hash("correct horse")
    assert await verify(hasher, "correct horse", password_hash)
    ticks.now += 599
    assert hasher.is_proven("correct horse", password_hash)
    ticks.now += 599
    assert hasher.is_proven("correct horse", password_hash)
    ticks.now += 600
    assert not hasher.is_proven("correct horse", password_hash)


async def test_proofs_are_bounded(hasher: passwords.Passwords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hasher._proofs, "_max_entries", 2)
    pairs = [(text, await hasher.hash(text)) for text in ("first horse", "second horse", "third horse")]
    for text, password_hash in pairs:
        assert await verify(hasher, text, password_hash)
    assert [hasher.is_proven(*pair) for pair in pairs] == [False, True, True]


async def test_one_pair_is_checked_once_at_a_time_even_if_its_first_caller_goes_away(
    hasher: passwords.Passwords, argon: Argon
) -> None:
    password_hash = await hasher.hash("correct horse")
    argon.go.clear()
    first, *waiting = [asyncio.ensure_future(verify(hasher, "correct horse", password_hash)) for _ in range(64)]
    await asyncio.sleep(0)
    first.cancel()
    argon.go.set()
    assert await asyncio.gather(*waiting) == [True] * 63
    assert argon.count == 1


async def test_fifty_checks_share_a_few_threads_and_leave_the_loop_free(
    hasher: passwords.Passwords, argon: Argon
) -> None:
    password_hash = await hasher.hash("correct horse")
    argon.go.clear()
    waiting = [asyncio.ensure_future(verify(hasher, f"wrong {number}", password_hash)) for number in range(50)]
    while argon.at_once < 2:
        await asyncio.sleep(0)  # the loop turns while every thread is busy
    assert not any(check.done() for check in waiting)
    argon.go.set()
    assert await asyncio.gather(*waiting) == [False] * 50
    assert argon.most_at_once == 2


async def test_a_full_queue_refuses_and_recovers(
    hasher: passwords.Passwords, argon: Argon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hasher._jobs._places, "free", 3)
    password_hash = await hasher.hash("correct horse")
    argon.go.clear()
    waiting = [asyncio.ensure_future(verify(hasher, f"wrong {number}", password_hash)) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(errors.ServiceUnavailable) as refusal:
        await verify(hasher, "one too many", password_hash)
    assert refusal.value.retry_after
    with pytest.raises(errors.ServiceUnavailable):
        await hasher.hash("one too many")
    argon.go.set()
    await asyncio.gather(*waiting)
    assert await verify(hasher, "correct horse", password_hash)


async def test_a_stand_in_costs_what_a_real_hash_costs_each_time_and_belongs_to_its_name(
    hasher: passwords.Passwords, argon: Argon
) -> None:
    real = argon2.extract_parameters(await hasher.hash("correct horse"))
    assert argon2.extract_parameters(hasher.dummy_hash("jo")) == real
    assert hasher.dummy_hash("jo") == hasher.dummy_hash("jo") != hasher.dummy_hash("al")
    for _ in range(2):
        assert not await verify(hasher, "correct horse", hasher.dummy_hash("jo"))
    assert argon.count == 2


@pytest.mark.parametrize("password", ["x" * 257, "x" * 1_000_000, "with\0nul", "half \ud800 pair"])
async def test_what_can_be_no_password_is_refused_before_argon2(
    hasher: passwords.Passwords, argon: Argon, password: str
) -> None:
    password_hash = await hasher.hash("correct horse")
    assert not await verify(hasher, password, password_hash)
    assert not hasher.is_proven(password, password_hash)
    assert argon.count == 0
    with pytest.raises(errors.InvalidRequest, match="password:"):
        passwords.refuse_impossible("password", password)


@pytest.mark.parametrize("password", ["1 char shy", "x" * 256, "pässwörter", "🐴" * 256])
async def test_up_to_256_characters_of_any_script_are_fine(hasher: passwords.Passwords, password: str) -> None:
    passwords.refuse_impossible("password", password)
    assert len(password.encode()) <= 1024
    assert await verify(hasher, password, await hasher.hash(password))


async def test_after_the_end_nothing_is_checked(hasher: passwords.Passwords) -> None:
    await hasher.close()
    with pytest.raises(errors.ServiceUnavailable):
        await hasher.hash("correct horse")


# Passwords that users choose: ten characters of any script, and not among those that are guessed first.

EMAIL = "jo.smith@example.com"


def test_a_new_password_has_10_to_256_characters_and_is_not_among_those_that_are_guessed_first() -> None:
    for password in ("ten of 'em", "pässwörter", "🐴🦓🦄🐎🫏🐐🐑🐏🐂🐃", "kq.7 x-HqBt ka!j" * 16):
        passwords.check_new("password", password, email=EMAIL)
    for password in ("", "9 letters", "🐴🦓🦄🐎🫏🐐🐑🐏🐂", "x" * 257, "with \0 nul nul"):
        with pytest.raises(errors.InvalidRequest, match="new_password:") as refusal:
            passwords.check_new("new_password", password, email=EMAIL)
        assert not password or password not in refusal.value.message
    for password in ("password123", "Manchester", "1Dragon2024!", "smith12345"):
        with pytest.raises(errors.InvalidRequest, match=r"^password: .*choose another one$") as refusal:
            passwords.check_new("password", password, email=EMAIL)
        assert password not in refusal.value.message


def test_the_list_has_ten_thousand_entries_with_the_licence_of_its_source() -> None:
    files = resources.files(people)
    entries = files.joinpath("common_passwords.txt").read_text(encoding="utf-8").splitlines()
    assert len(entries) == 10_000
    assert entries == sorted(set(entries))
    assert all(entry == entry.casefold() for entry in entries)
    assert "MIT License" in files.joinpath("common_passwords.LICENSE.txt").read_text(encoding="utf-8")
