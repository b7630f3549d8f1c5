"""Recovery codes: ten at a time, for one login, each once, however they are typed."""

import re

import pytest

from postroad import context
from postroad.services.people import second_factors as recovery_codes
from postroad.storage.people import second_factors, users

LOGIN, OTHER = "lgn_" + "1" * 28, "lgn_" + "2" * 28


async def test_ten_codes_work_once_each(ctx: context.Context) -> None:
    async with ctx.store.transaction() as tx:
        await users.insert_login(tx, users.Login(LOGIN, "jo@example.com", "jo@example.com", "hash", 1, 1))
        codes = await recovery_codes.renew_recovery_codes(tx, LOGIN)
        assert len(set(codes)) == 10
        assert all(re.fullmatch(r"([2-9a-z]{4}-){3}[2-9a-z]{4}", code) for code in codes)
        assert not await recovery_codes.use_recovery_code(tx, OTHER, codes[0])
        assert [await recovery_codes.use_recovery_code(tx, LOGIN, code) for code in (codes[0], codes[0], codes[1])] == [
            True,
            False,
            True,
        ]
        assert (await second_factors.of_login(tx, LOGIN)).recovery_codes == 8


async def test_new_codes_replace_all_earlier_ones(ctx: context.Context) -> None:
    async with ctx.store.transaction() as tx:
        earlier = await recovery_codes.renew_recovery_codes(tx, LOGIN)
        later = await recovery_codes.renew_recovery_codes(tx, LOGIN)
        assert not set(earlier) & set(later)
        assert not await recovery_codes.use_recovery_code(tx, LOGIN, earlier[0])
        assert await recovery_codes.use_recovery_code(tx, LOGIN, later[0])


async def test_a_code_is_the_same_in_capitals_and_without_hyphens(ctx: context.Context) -> None:
    async with ctx.store.transaction() as tx:
        first, second, *_ = await recovery_codes.renew_recovery_codes(tx, LOGIN)
        assert await recovery_codes.use_recovery_code(tx, LOGIN, first.upper().replace("-", " "))
        assert await recovery_codes.use_recovery_code(tx, LOGIN, second.replace("-", ""))


@pytest.mark.parametrize("text", ["", "123456", "abcd-abcd-abcd-abc", "abcd-abcd-abcd-abcd-a", "abcd-abcd-abcd-abc0"])
def test_other_texts_do_not_look_like_a_code(text: str) -> None:
    assert not recovery_codes.is_recovery_code(text)
    assert recovery_codes.is_recovery_code("abcd-ABCD abcdabcd")
