"""Codes of second factors: those of RFC 6238, around their time, each once; recovery codes; and logins that wait."""

import base64
import re
from urllib import parse

import pytest

from postroad import context, errors
from postroad.keys import encryption
from postroad.model.units import times
from postroad.services.operations import cleanup
from postroad.services.people import logins, password_links
from postroad.services.people import second_factors as people_second_factors
from postroad.services.people import users as account_users
from postroad.storage.people import second_factors, users
from tests.contexts import Clock
from tests.services.audit_entries import ADDRESS
from tests.services.people import authenticator
from tests.storage import samples

LOGIN, OTHER = "lgn_" + "1" * 28, "lgn_" + "2" * 28
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
    step = 1234567890 // 30

    def found(seconds: int) -> int | None:
        now = (step * 30 + seconds) * times.SECOND
        return people_second_factors.matching_totp_step(SECRET, CODES[1234567890], now=now, after=0)

    assert [found(seconds) for seconds in (-31, -30, 0, 59, 60)] == [None, step, step, step, None]


def test_a_code_of_a_used_step_is_wrong() -> None:
    step = 1234567890 // 30
    for after, found in ((step, None), (step - 1, step)):
        now = 1234567890 * times.SECOND
        assert people_second_factors.matching_totp_step(SECRET, "005924", now=now, after=after) == found


def test_six_digits_or_sixteen_characters_look_like_a_code() -> None:
    assert people_second_factors.is_totp_code("123456")
    for text in ("12345", "1234567", "12345a", "", "１２３４５６", " 12345"):
        assert not people_second_factors.is_totp_code(text)
    assert people_second_factors.is_recovery_code("abcd-ABCD abcdabcd")
    for text in ("", "123456", "abcd-abcd-abcd-abc", "abcd-abcd-abcd-abcd-a", "abcd-abcd-abcd-abc0"):
        assert not people_second_factors.is_recovery_code(text)


def test_the_address_for_an_app_names_the_service_and_the_login() -> None:
    found = parse.urlsplit(people_second_factors.totp_uri(SECRET, email="ada+x@example.org"))
    assert (found.scheme, found.netloc, parse.unquote(found.path)) == ("otpauth", "totp", "/Postroad:ada+x@example.org")
    assert parse.parse_qs(found.query) == {"secret": [SECRET], "issuer": ["Postroad"]}


async def test_a_secret_is_stored_encrypted_for_its_login(ctx: context.Context) -> None:
    async with ctx.store.transaction() as tx:
        await people_second_factors._store_totp(ctx, tx, LOGIN)
        secret = await people_second_factors._unconfirmed_totp(ctx, tx, LOGIN)
        stored = await second_factors.totp(tx, LOGIN)
        assert secret is not None
        assert stored is not None
        assert len(base64.b32decode(secret)) == 20
        assert secret.encode() not in stored.secret
        await second_factors.put_totp(tx, OTHER, stored.secret, now=1)
        with pytest.raises(encryption.DecryptionError):
            await people_second_factors._unconfirmed_totp(ctx, tx, OTHER)


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


# Recovery codes: ten at a time, for one login, each once, however they are typed.


async def test_ten_codes_work_once_each_however_they_are_typed_until_there_are_new_ones(ctx: context.Context) -> None:
    async with ctx.store.transaction() as tx:
        await users.insert_login(tx, users.Login(LOGIN, "jo@example.com", "jo@example.com", "hash", 1, 1))
        earlier = await people_second_factors.renew_recovery_codes(tx, LOGIN)
        codes = await people_second_factors.renew_recovery_codes(tx, LOGIN)
        assert len({*earlier, *codes}) == 20
        assert all(re.fullmatch(r"([2-9a-z]{4}-){3}[2-9a-z]{4}", code) for code in codes)
        for login_id, code, is_right in (
            (LOGIN, earlier[0], False),
            (OTHER, codes[0], False),
            (LOGIN, codes[0], True),
            (LOGIN, codes[0], False),
            (LOGIN, codes[1].upper().replace("-", " "), True),
            (LOGIN, codes[2].replace("-", ""), True),
        ):
            assert await people_second_factors.use_recovery_code(tx, login_id, code) == is_right
        assert (await second_factors.of_login(tx, LOGIN)).recovery_codes == 7


# Logins that wait for their second factor: for five minutes, once, and only as they were.


@pytest.fixture
async def token(ctx: context.Context, owner: users.User) -> str:
    return await people_second_factors.begin_pending(ctx, await authenticator.login_of(ctx, owner), methods="password")


async def refused(ctx: context.Context, token: str | None) -> None:
    for attempt in (people_second_factors.find_pending(ctx, token), people_second_factors.consume_pending(ctx, token)):
        with pytest.raises(errors.Unauthorized, match="log in again"):
            await attempt


async def test_a_pending_login_is_completed_once_and_only_the_hash_of_its_token_is_stored(
    ctx: context.Context, owner: users.User, token: str
) -> None:
    assert len(token) == 43
    async with ctx.store.reading() as tx:
        (row,) = await tx.fetch_composed("SELECT token_hash FROM pending_logins")
    assert token.encode() not in bytes(row[0])
    for _ in range(2):
        assert (await people_second_factors.find_pending(ctx, token)).login.id == owner.login_id
    found = await people_second_factors.consume_pending(ctx, token)
    assert (found.login.id, found.methods, found.invitation) == (owner.login_id, "password", None)
    await refused(ctx, token)


async def test_forged_and_missing_tokens_are_refused(ctx: context.Context, token: str) -> None:
    for forged in (None, "", "x", token[:-1], token[:-1] + "!", "0" * 43, "\ud800"):
        await refused(ctx, forged)
    await people_second_factors.consume_pending(ctx, token)


async def test_it_lasts_for_five_minutes(ctx: context.Context, token: str, clock: Clock) -> None:
    clock.pass_seconds(299)
    await people_second_factors.find_pending(ctx, token)
    clock.pass_seconds(1)
    with pytest.raises(errors.Unauthorized):
        await people_second_factors.find_pending(ctx, token)
    swept = await cleanup.sweep(ctx)
    assert swept.pending_logins == 1
    assert await samples.count(ctx.store, "pending_logins") == 0


async def test_a_new_password_ends_it(ctx: context.Context, owner: users.User, token: str) -> None:
    made = await account_users.create_password_link(ctx, owner.account_id, owner.id)
    acting = logins.acting(ctx, client_address=ADDRESS)
    await password_links.redeem(acting, made.token, password="another good one")
    await refused(ctx, token)
