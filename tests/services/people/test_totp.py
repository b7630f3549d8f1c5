"""Codes of authenticator apps: those of RFC 6238, around their time, and each once."""

import base64
from urllib import parse

import pytest

from postroad import context
from postroad.keys import encryption
from postroad.model.units import times
from postroad.services.people import second_factors as people_second_factors
from postroad.storage.people import second_factors
from tests.contexts import Clock
from tests.services.people import authenticator

LOGIN = "lgn_" + "1" * 28
# RFC 6238 appendix B: the secret of the SHA-1 rows, and the last six of their eight digits.
SECRET = base64.b32encode(b"12345678901234567890").decode()
CODES = {
    59: "287082",
    1111111109: "081804",
    1111111111: "050471",
    1234567890: "005924",
    2000000000: "279037",
    20000000000: "353130",
}


@pytest.mark.parametrize("second, code", CODES.items())
def test_codes_are_those_of_the_specification(second: int, code: str) -> None:
    assert people_second_factors.matching_totp_step(SECRET, code, now=second * times.SECOND, after=0) == second // 30


def test_a_code_is_right_one_step_early_or_late() -> None:
    def steps(second: int) -> int | None:
        return people_second_factors.matching_totp_step(SECRET, CODES[1234567890], now=second * times.SECOND, after=0)

    begin = 1234567890 // 30 * 30
    assert [steps(begin + seconds) for seconds in (-31, -30, 0, 59, 60)] == [
        None,
        begin // 30,
        begin // 30,
        begin // 30,
        None,
    ]


def test_a_code_of_a_used_step_is_wrong() -> None:
    now = 1234567890 * times.SECOND
    assert people_second_factors.matching_totp_step(SECRET, "005924", now=now, after=1234567890 // 30) is None
    assert (
        people_second_factors.matching_totp_step(SECRET, "005924", now=now, after=1234567890 // 30 - 1)
        == 1234567890 // 30
    )


@pytest.mark.parametrize("text", ["12345", "1234567", "12345a", "", "１２３４５６", " 12345"])
def test_only_six_digits_look_like_a_code(text: str) -> None:
    assert not people_second_factors.is_totp_code(text)
    assert people_second_factors.is_totp_code("123456")


def test_the_address_for_an_app_names_the_service_and_the_login() -> None:
    found = parse.urlsplit(people_second_factors.totp_uri(SECRET, email="ada+x@example.org"))
    assert (found.scheme, found.netloc, parse.unquote(found.path)) == ("otpauth", "totp", "/Postroad:ada+x@example.org")
    assert parse.parse_qs(found.query) == {"secret": [SECRET], "issuer": ["Postroad"]}


async def test_a_secret_counts_with_its_first_code_and_is_stored_encrypted(ctx: context.Context, clock: Clock) -> None:
    async with ctx.store.transaction() as tx:
        assert await people_second_factors._store_totp(ctx, tx, LOGIN)
        secret = await people_second_factors._unconfirmed_totp(ctx, tx, LOGIN)
        stored = await second_factors.totp(tx, LOGIN)
        assert secret is not None
        assert stored is not None
        assert len(base64.b32decode(secret)) == 20
        assert secret.encode() not in stored.secret
        code = authenticator.code(secret, clock)
        assert not await people_second_factors._use_totp_code(ctx, tx, LOGIN, code)
        assert not await people_second_factors._confirm_totp_code(ctx, tx, LOGIN, authenticator.wrong(secret, clock))
        assert await people_second_factors._confirm_totp_code(ctx, tx, LOGIN, code)
        assert await people_second_factors._unconfirmed_totp(ctx, tx, LOGIN) is None
        assert not await people_second_factors._store_totp(ctx, tx, LOGIN)
        # The code that confirmed it is used up.
        assert not await people_second_factors._use_totp_code(ctx, tx, LOGIN, code)
        clock.pass_seconds(30)
        assert await people_second_factors._use_totp_code(ctx, tx, LOGIN, authenticator.code(secret, clock))


async def test_a_secret_belongs_to_its_login(ctx: context.Context) -> None:
    async with ctx.store.transaction() as tx:
        await people_second_factors._store_totp(ctx, tx, LOGIN)
        stored = await second_factors.totp(tx, LOGIN)
        assert stored is not None
        await second_factors.put_totp(tx, "lgn_" + "2" * 28, stored.secret, now=1)
        with pytest.raises(encryption.DecryptionError):
            await people_second_factors._unconfirmed_totp(ctx, tx, "lgn_" + "2" * 28)


async def test_an_app_is_set_up_within_an_hour(ctx: context.Context, clock: Clock) -> None:
    async with ctx.store.transaction() as tx:
        for seconds, is_set_up in ((3600, False), (3599, True)):
            assert await people_second_factors._store_totp(ctx, tx, LOGIN)
            secret = await people_second_factors._unconfirmed_totp(ctx, tx, LOGIN)
            assert secret is not None
            clock.pass_seconds(seconds)
            assert (
                await people_second_factors._confirm_totp_code(ctx, tx, LOGIN, authenticator.code(secret, clock))
                == is_set_up
            )
