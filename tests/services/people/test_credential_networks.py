"""The networks of SMTP credentials: who guesses from the same network stops no application that was there before."""

import argon2
import pytest

from postroad import context, errors
from postroad.model.people import login_rules
from postroad.services.people import authentication, credentials, passwords
from postroad.storage.people import rates
from tests import contexts
from tests.contexts import Clock

ELSEWHERE = "203.0.113.7"


@pytest.fixture
def database_url(clean_sqlite_url: str) -> str:
    """The counters and the networks have tests on both engines: one will do here."""
    return clean_sqlite_url


async def connect(ctx: context.Context, username: str, password: str, address: str) -> None:
    """Log in as a process does that has not seen the pair before."""
    contexts.concrete(ctx.passwords, passwords.Passwords)._proofs._values.clear()
    ctx.access_cache.invalidate()
    await authentication.authenticate_password(ctx, username, password, client_address=address)


async def exhaust(ctx: context.Context, addresses: list[str], *, tag: str) -> None:
    """What guessers of many names use up, without Argon2."""
    for address in addresses:
        for number in range(101):
            counters = login_rules.of_credential(f"{tag}{number}", address, is_known=False)
            await ctx.access_cache.login_failures.attempt(counters, now=ctx.clock())


async def last_login(ctx: context.Context, credential_id: str, address: str) -> int | None:
    async with ctx.store.reading() as tx:
        return await rates.last_login(tx, credential_id, login_rules.network_of(address))


@pytest.mark.parametrize(
    "guessers, application",
    [
        ([f"198.51.100.{number}" for number in range(20, 25)], "198.51.100.9"),
        (["198.51.100.9"], "198.51.100.9"),
        ([f"2001:4860:1:{number}::1" for number in range(20, 25)], "2001:4860:1:9::1"),
    ],
    ids=["the /24", "one address", "the /48"],
)
async def test_guessers_in_the_same_network_do_not_stop_an_application(
    ctx: context.Context, account_id: str, clock: Clock, guessers: list[str], application: str
) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")
    await connect(ctx, credential.username, password, application)
    for turn in range(3):
        await exhaust(ctx, guessers, tag=f"name {turn} ")
        # A network without a login is throttled, whether the name exists or not.
        for name in (credential.username, "smtp_unknown"):
            counters = login_rules.of_credential(name, guessers[0], is_known=False)
            assert await ctx.access_cache.login_failures.attempt(counters, now=ctx.clock())
        await connect(ctx, credential.username, password, application)
        clock.pass_seconds(4)


async def test_guessing_stays_bounded_on_a_known_network(
    ctx: context.Context, account_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")
    await connect(ctx, credential.username, password, ELSEWHERE)
    checks = 0

    def counted(_hasher: argon2.PasswordHasher, _hash: str, _password: bytes) -> bool:
        nonlocal checks
        checks += 1
        raise argon2.exceptions.VerifyMismatchError

    monkeypatch.setattr(argon2.PasswordHasher, "verify", counted)
    for number in range(120):
        with pytest.raises((errors.Unauthorized, errors.RateLimited)):
            await connect(ctx, credential.username, f"wrong {number}", ELSEWHERE)
    assert checks == 100
    for number in range(150):
        with pytest.raises((errors.Unauthorized, errors.RateLimited)):
            await connect(ctx, f"smtp_{number}", "wrong", ELSEWHERE)
    assert checks == 200


async def test_a_network_is_recorded_at_the_first_login_and_once_a_day_until_the_credential_is_revoked(
    ctx: context.Context, account_id: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")

    async def refuse(*_args: object, **_named: object) -> None:
        raise errors.TemporaryFailure("read-only")

    with pytest.raises(errors.Unauthorized):
        await connect(ctx, credential.username, "wrong", ELSEWHERE)
    with monkeypatch.context() as read_only:
        read_only.setattr(rates, "put_network", refuse)
        await connect(ctx, credential.username, password, ELSEWHERE)
    assert await last_login(ctx, credential.id, ELSEWHERE) is None
    first = ctx.clock()
    await connect(ctx, credential.username, password, ELSEWHERE)
    clock.pass_seconds(3600)
    await connect(ctx, credential.username, password, ELSEWHERE)
    assert await last_login(ctx, credential.id, ELSEWHERE) == first
    clock.pass_seconds(authentication.NETWORK_RENEWAL / 1_000_000)
    await connect(ctx, credential.username, password, ELSEWHERE)
    assert await last_login(ctx, credential.id, ELSEWHERE) == ctx.clock()
    await credentials.revoke(ctx, account_id, credential.id)
    assert await last_login(ctx, credential.id, ELSEWHERE) is None
