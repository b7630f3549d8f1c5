"""Second factors of a login: whether one is required and proved, recovery codes, and logins that wait for theirs."""

import base64
import contextlib
import functools
import hashlib
import hmac
import secrets
from typing import Final

import msgspec
import pyotp

from postroad import context, errors
from postroad.keys import encryption
from postroad.mail import notice_kinds, notice_outbox
from postroad.model.people import login_rules
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.people import passwords, tokens
from postroad.storage.engine import store
from postroad.storage.people import accounts, credentials, rates, second_factors, sessions, users

# Recovery codes: ten one-time codes for whoever has lost their second factor.
#
# A code has 80 random bits, so that a plain hash protects it: it is found neither by guessing nor from a stolen
# database.

RECOVERY_CODES: Final = 10
# Letters and digits that nobody confuses: 32, so 16 of them are 80 bits.
RECOVERY_ALPHABET: Final = "23456789abcdefghijkmnpqrstuvwxyz"
RECOVERY_CHARACTERS: Final = 16
RECOVERY_GROUP: Final = 4
_SEPARATORS: Final = str.maketrans("", "", " -")


def is_recovery_code(text: str) -> bool:
    """Whether a text looks like a code, however it is grouped."""
    plain = _plain(text)
    return len(plain) == RECOVERY_CHARACTERS and set(plain) <= set(RECOVERY_ALPHABET)


async def renew_recovery_codes(tx: store.Transaction, login_id: str) -> list[str]:
    """New codes, which are shown once; earlier ones no longer work."""
    codes = [_new_recovery_code() for _ in range(RECOVERY_CODES)]
    await second_factors.replace_codes(tx, login_id, [_recovery_hash(login_id, code) for code in codes])
    return codes


async def use_recovery_code(tx: store.Transaction, login_id: str, code: str) -> bool:
    """Use up a code; False if it is wrong or was used."""
    return await second_factors.use_code(tx, login_id, _recovery_hash(login_id, code))


def _new_recovery_code() -> str:
    text = "".join(secrets.choice(RECOVERY_ALPHABET) for _ in range(RECOVERY_CHARACTERS))
    return "-".join(text[start : start + RECOVERY_GROUP] for start in range(0, RECOVERY_CHARACTERS, RECOVERY_GROUP))


def _plain(text: str) -> str:
    return text.translate(_SEPARATORS).lower()


def _recovery_hash(login_id: str, code: str) -> bytes:
    return hashlib.sha256(f"{login_id} {_plain(code)}".encode()).digest()


TOTP: Final = "totp"
RECOVERY_CODE: Final = "recovery_code"
PASSKEY: Final = "passkey"
METHODS: Final = frozenset({TOTP, RECOVERY_CODE, PASSKEY})
# Methods of a session that satisfy the requirement of a second factor. Whoever makes a token at the command line has
# the installation.
SUFFICIENT: Final = METHODS | {"sso", "operator"}
# Tells programs what is wanted: `required`, the code of a login, or `missing`, a factor that is to be set up.
HEADER: Final = "Second-Factor"
# A code of any kind; longer texts are no codes.
MAX_CODE_CHARACTERS: Final = 40


def is_required(ctx: context.Context, user: users.User, account: accounts.Account) -> bool:
    is_operator = user.operator_since is not None
    return account.second_factor_since is not None or (is_operator and ctx.settings.security.operator_second_factor)


def suffice(methods: str) -> bool:
    """Whether a session that began with these methods has a second factor."""
    return not SUFFICIENT.isdisjoint(methods.split())


async def of_login(ctx: context.Context, login_id: str) -> second_factors.Factors:
    async with ctx.store.reading() as tx:
        return await second_factors.of_login(tx, login_id)


async def users_with(ctx: context.Context, account_id: str) -> set[str]:
    async with ctx.store.reading() as tx:
        return await second_factors.users_with(tx, account_id)


async def login_of(ctx: context.Context, login_id: str) -> users.Login:
    async with ctx.store.reading() as tx:
        login = await users.login_by_id(tx, login_id)
    if login is None:
        raise errors.Unauthorized("the session has ended; log in again")
    return login


def required() -> errors.SecondFactorRequired:
    """The refusal of a login with a right password and no code."""
    return _refusal(
        "a second factor is required; send a code from the authenticator app, or a recovery code, as 'code'"
    )


def missing() -> errors.SecondFactorMissing:
    """The refusal of a user who has to set up a second factor first."""
    refusal = errors.SecondFactorMissing(
        "you need a second factor and have none; log in to the dashboard to set one up"
    )
    refusal.headers = ((HEADER, "missing"),)
    return refusal


async def check_code(ctx: context.Context, login: users.Login, code: str) -> str:
    """The method that a right code belongs to; the code is used up. Raises RateLimited, SecondFactorRequired."""
    counters = await _count(ctx, login)
    text = code.strip()
    async with ctx.store.transaction() as tx:
        method = await _use(ctx, tx, login, text)
        if method == RECOVERY_CODE:
            await _audit(ctx, tx, login, "user.recovery_code_used")
    if method is None:
        _audit_failure(ctx, login, "user.second_factor_failed")
        raise _refusal("the code is wrong or was already used; wait for the next one")
    await ctx.access_cache.login_failures.forgive(counters, now=ctx.clock())
    return method


async def prove(ctx: context.Context, login: users.Login, proof: str) -> None:
    """Refuse unless the text is the password of the login, or a code from its authenticator app.

    A stolen session must not suffice to change what a person logs in with.
    """
    if is_totp_code(proof.strip()):
        await check_code(ctx, login, proof)
        return
    own = passwords.Target(login.id, login.password_hash, await _is_known(ctx, login))
    matched = await passwords.check_user_password(ctx, proof, [own], client_address=ctx.actor.client_address)
    if matched is None:
        _audit_failure(ctx, login, "user.login_failed")
        raise errors.InvalidRequest("proof: incorrect; enter your password or a code from your authenticator app")


async def confirm_totp(ctx: context.Context, login: users.Login, code: str) -> list[str]:
    """Make an authenticator app a factor with its first code; returns recovery codes if there were none."""
    counters = await _count(ctx, login)
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        if not await _confirm_totp_code(ctx, tx, login.id, code.strip()):
            raise errors.InvalidRequest("code: incorrect; check the clock of your device, or start again")
        await tell_added(ctx, tx, login, "an authenticator app")
        factors = await second_factors.of_login(tx, login.id)
        codes = [] if factors.recovery_codes else await renew_recovery_codes(tx, login.id)
    ctx.access_cache.invalidate()
    await ctx.access_cache.login_failures.forgive(counters, now=ctx.clock())
    return codes


async def begin_totp(ctx: context.Context, login: users.Login) -> str:
    """The secret of a new authenticator app, which is no factor until `confirm_totp`."""
    async with ctx.store.transaction() as tx:
        is_new = await _store_totp(ctx, tx, login.id)
        secret = await _unconfirmed_totp(ctx, tx, login.id) if is_new else None
    if secret is None:
        raise errors.Conflict("you already have an authenticator app; remove it first")
    return secret


async def remove_totp(ctx: context.Context, login: users.Login) -> None:
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        if not await second_factors.remove_totp(tx, login.id):
            raise errors.NotFound("you have no authenticator app")
        await tell_removed(ctx, tx, login, "the authenticator app")
    ctx.access_cache.invalidate()


async def renew_codes(ctx: context.Context, login: users.Login) -> list[str]:
    """New recovery codes; the earlier ones no longer work."""
    async with ctx.store.transaction() as tx:
        if not (await second_factors.of_login(tx, login.id)).exist:
            raise errors.Conflict("recovery codes replace a second factor; set one up first")
        codes = await renew_recovery_codes(tx, login.id)
        await _audit(ctx, tx, login, "user.recovery_codes_renewed")
    return codes


async def remove_all(ctx: context.Context, tx: store.Transaction, login_id: str) -> None:
    """Remove every factor of a login: its person has lost them."""
    login = await users.login_by_id(tx, login_id)
    if login is not None and await second_factors.remove_totp(tx, login.id):
        await tell_removed(ctx, tx, login, "the authenticator app")
    if login is not None and await second_factors.remove_passkeys(tx, login.id):
        await tell_removed(ctx, tx, login, "all passkeys")


async def tell_added(ctx: context.Context, tx: store.Transaction, login: users.Login, factor: str) -> None:
    await _audit(ctx, tx, login, "user.second_factor_added", factor)
    await _notice(ctx, tx, login, notice_kinds.FACTOR_ADDED, factor)


async def tell_removed(ctx: context.Context, tx: store.Transaction, login: users.Login, factor: str) -> None:
    """Record that a factor was removed, and tell its person. Recovery codes go with the last one."""
    if not (await second_factors.of_login(tx, login.id)).exist:
        await second_factors.remove_codes(tx, login.id)
    await _audit(ctx, tx, login, "user.second_factor_removed", factor)
    await _notice(ctx, tx, login, notice_kinds.FACTOR_REMOVED, factor)


async def _count(ctx: context.Context, login: users.Login) -> login_rules.Counters:
    """Count an attempt; RateLimited when it is not allowed."""
    counters = login_rules.of_code(login.id, ctx.actor.client_address, is_known=await _is_known(ctx, login))
    await ctx.access_cache.login_failures.check(counters, now=ctx.clock(), what="wrong codes")
    return counters


async def _is_known(ctx: context.Context, login: users.Login) -> bool:
    """Whether somebody logged in with this login from this network before."""
    async with ctx.store.reading() as tx:
        return await rates.is_known_network(tx, login.id, login_rules.network_of(ctx.actor.client_address))


async def _use(ctx: context.Context, tx: store.Transaction, login: users.Login, text: str) -> str | None:
    if is_totp_code(text) and await _use_totp_code(ctx, tx, login.id, text):
        return TOTP
    if is_recovery_code(text) and await use_recovery_code(tx, login.id, text):
        return RECOVERY_CODE
    return None


async def _audit(
    ctx: context.Context, tx: store.Transaction, login: users.Login, action: str, detail: str = ""
) -> None:
    """Write an entry in every account of a login: each relies on it."""
    for user in await users.of_login(tx, login.id):
        await audit_log.write(ctx, tx, user.account_id, action, user.email, detail)


def _audit_failure(ctx: context.Context, login: users.Login, action: str) -> None:
    """Record a wrong code or password, after the response, as often as those of logging in."""
    with contextlib.suppress(errors.ServiceUnavailable):
        ctx.access_cache.password_checks.start(object(), functools.partial(_write_failure, ctx, login, action))


async def _write_failure(ctx: context.Context, login: users.Login, action: str) -> None:
    if await ctx.access_cache.login_failures.attempt(login_rules.of_audit(login.id), now=ctx.clock()):
        return
    async with ctx.store.transaction() as tx:
        await _audit(ctx, tx, login, action)


async def _notice(ctx: context.Context, tx: store.Transaction, login: users.Login, kind: str, factor: str) -> None:
    members = await users.of_login(tx, login.id)
    told = next((member for member in members if member.id == ctx.actor.user_id), members[0] if members else None)
    if told is None:
        return
    notice = notice_outbox.NewNotice(
        kind=kind,
        subject=f"{login.id} {factor}",
        values={"email": login.email, "factor": factor, "at": times.to_wire(ctx.clock())},
        account_id=told.account_id,
        user_id=told.id,
    )
    await notice_outbox.write(tx, [notice], now=ctx.clock(), entropy=ctx.entropy)


def _refusal(message: str) -> errors.SecondFactorRequired:
    refusal = errors.SecondFactorRequired(message)
    refusal.headers = ((HEADER, "required"),)
    return refusal


# A login between its password and its second factor: a token in a cookie, for five minutes.
#
# The token is unguessable, the database has its hash, and it works once. It belongs to the login as it was when the
# password was checked: a new password ends it.

PENDING_SECONDS: Final = 300


class PendingLogin(msgspec.Struct, frozen=True):
    """A login, the methods that it has proved, and the hash of the invitation that it wants to accept."""

    login: users.Login
    methods: str
    invitation: bytes | None


async def begin_pending(
    ctx: context.Context, login: users.Login, *, methods: str, invitation: bytes | None = None
) -> str:
    """A token for a login that has proved `methods`, such as its password."""
    token = tokens.new_secret()
    expires_at = ctx.clock() + PENDING_SECONDS * times.SECOND
    pending = sessions.PendingLogin(login.id, login.tokens_valid_from, methods, expires_at, invitation)
    async with ctx.store.transaction() as tx:
        await sessions.insert_pending(tx, tokens.hash_secret(token), pending)
    return token


async def find_pending(ctx: context.Context, token: str | None) -> PendingLogin:
    """The login that waits for its second factor."""
    async with ctx.store.reading() as tx:
        found = None if token is None else await sessions.find_pending(tx, tokens.hash_secret(token))
        login = None if found is None else await users.login_by_id(tx, found.login_id)
    return _current_login(ctx, found, login)


async def consume_pending(ctx: context.Context, token: str | None) -> PendingLogin:
    """The same, once: its second factor was right."""
    async with ctx.store.transaction() as tx:
        found = None if token is None else await sessions.consume_pending(tx, tokens.hash_secret(token))
        login = None if found is None else await users.login_by_id(tx, found.login_id)
    return _current_login(ctx, found, login)


def _current_login(
    ctx: context.Context, found: sessions.PendingLogin | None, login: users.Login | None
) -> PendingLogin:
    if found is None or login is None or ctx.clock() >= found.expires_at or found.epoch != login.tokens_valid_from:
        raise errors.Unauthorized("this login has expired; log in again")
    return PendingLogin(login, found.methods, found.invitation)


# Authenticator apps: time-based codes (RFC 6238) with SHA-1, six digits and steps of 30 seconds, as apps expect.
#
# A code is accepted one step early or late, for clocks that differ and people who type (section 5.2), and only once:
# the step of the last accepted code is stored, and only later ones are accepted after it. The secret is encrypted with
# the installation key.

# RFC 4226 section 4, R6.
TOTP_SECRET_BYTES: Final = 20
TOTP_DIGITS: Final = 6
TOTP_STEP: Final = 30 * times.SECOND
TOTP_DRIFT_STEPS: Final = 1
# Whoever begins to set up an app finishes it; a secret that was seen by others is not left to be confirmed later.
TOTP_SET_UP: Final = times.HOUR


def is_totp_code(text: str) -> bool:
    return len(text) == TOTP_DIGITS and text.isascii() and text.isdigit()


def matching_totp_step(secret: str, code: str, *, now: int, after: int) -> int | None:
    """The step that a code is of, among those around now and after the last one that was used."""
    generator, found = pyotp.HOTP(secret, digits=TOTP_DIGITS), None
    # All of them, whichever matches: the time tells nothing.
    for step in range(now // TOTP_STEP - TOTP_DRIFT_STEPS, now // TOTP_STEP + TOTP_DRIFT_STEPS + 1):
        if hmac.compare_digest(generator.at(step).encode(), code.encode()) and step > after:
            found = step
    return found


def totp_uri(secret: str, *, email: str) -> str:
    return pyotp.TOTP(secret, digits=TOTP_DIGITS).provisioning_uri(email, issuer_name="Postroad")


async def _store_totp(ctx: context.Context, tx: store.Transaction, login_id: str) -> bool:
    """Store a new secret for a login, which is no factor until `confirm`; False if it has an authenticator app."""
    secret = base64.b32encode(ctx.entropy(TOTP_SECRET_BYTES))
    nonce = ctx.entropy(encryption.NONCE_BYTES)
    sealed = encryption.encrypt(ctx.keys.encryption, secret, owner=encryption.totp_owner(login_id), nonce=nonce)
    return await second_factors.put_totp(tx, login_id, sealed, now=ctx.clock())


async def _unconfirmed_totp(ctx: context.Context, tx: store.Transaction, login_id: str) -> str | None:
    found = await second_factors.totp(tx, login_id)
    return None if found is None or found.confirmed_at is not None else _totp_secret(ctx, login_id, found)


async def _confirm_totp_code(ctx: context.Context, tx: store.Transaction, login_id: str, code: str) -> bool:
    """Make the secret a factor, if the code is one of it."""
    found = await second_factors.totp(tx, login_id)
    if found is None or found.confirmed_at is not None or ctx.clock() - found.created_at >= TOTP_SET_UP:
        return False
    step = matching_totp_step(_totp_secret(ctx, login_id, found), code, now=ctx.clock(), after=0)
    return step is not None and await second_factors.confirm_totp(
        tx, login_id, secret=found.secret, step=step, now=ctx.clock()
    )


async def _use_totp_code(ctx: context.Context, tx: store.Transaction, login_id: str, code: str) -> bool:
    """Use up a code; False if it is wrong or was used."""
    found = await second_factors.totp(tx, login_id)
    if found is None or found.confirmed_at is None:
        return False
    step = matching_totp_step(_totp_secret(ctx, login_id, found), code, now=ctx.clock(), after=found.last_step)
    return step is not None and await second_factors.use_step(tx, login_id, step)


def _totp_secret(ctx: context.Context, login_id: str, found: second_factors.Totp) -> str:
    return encryption.decrypt(ctx.keys.encryption, found.secret, owner=encryption.totp_owner(login_id)).decode()
