"""Passkeys: discoverable credentials of Web Authentication, which prove a login without a secret that we store.

A passkey belongs to a login, and so to all accounts of its person. No attestation is asked for: any authenticator will
do. The count of an authenticator that counts must rise, otherwise it may have been copied. All answers that prove
nothing get the same error.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.model import identifiers, login_throttle
from postroad.protocol import passkey_answers
from postroad.services import context
from postroad.services.auth import login as services_login
from postroad.services.auth import passkey_challenges, recovery_codes, relying_party, second_factors
from postroad.services.auth.passkey_challenges import Ceremony
from postroad.storage import access_version, logins, passkeys, users
from postroad.storage import second_factors as stored_factors

# A few devices, a security key and its spare, with room.
MAX_PASSKEYS: Final = 20
MAX_NAME_CHARACTERS: Final = 64
# Section 14.6.1 suggests 64 random bytes; 32 are as unguessable.
USER_HANDLE_BYTES: Final = 32
# What a browser shows as the service.
NAME: Final = "Postroad"
_TIMEOUT_MILLISECONDS: Final = passkey_challenges.VALID_SECONDS * 1_000
# Whether the authenticator must check the person, by a fingerprint or a PIN: where nothing else proves who it is.
_NEEDS_VERIFICATION: Final = {
    Ceremony.REGISTER: False,
    Ceremony.LOG_IN: True,
    Ceremony.SECOND_FACTOR: False,
    Ceremony.CONFIRM: True,
}


class Asked(msgspec.Struct, frozen=True):
    """What a browser gets: the options of the ceremony, and the challenge, signed, for a cookie."""

    options: Mapping[str, Any]
    cookie: str


class Answer(msgspec.Struct, frozen=True):
    """What a browser sends: the cookie, and the answer of the authenticator as JSON."""

    cookie: str | None
    text: str


async def of_login(ctx: context.Context, login_id: str) -> list[passkeys.Passkey]:
    """The passkeys of a login, oldest first."""
    async with ctx.store.reading() as tx:
        return await passkeys.of_login(tx, login_id)


async def ask_to_register(ctx: context.Context, login: logins.Login, *, session_id: str) -> Asked:
    """Ask a logged-in person for a new passkey, from an authenticator that has none for this login."""
    party = _party(ctx)
    known = await of_login(ctx, login.id)
    _refuse_more(known)
    # All passkeys of a login have one handle, so that an authenticator keeps one of them.
    handle = known[0].user_handle if known else ctx.entropy(USER_HANDLE_BYTES)
    challenge = passkey_challenges.new(ctx, Ceremony.REGISTER, session_id, user_handle=handle)
    options = {
        "rp": {"id": party.id, "name": NAME},
        "user": {"id": passkey_challenges.encode(handle), "name": login.email, "displayName": login.email},
        "challenge": passkey_challenges.encode(challenge.value),
        "pubKeyCredParams": [{"type": "public-key", "alg": algorithm} for algorithm in passkey_answers.ALGORITHMS],
        "timeout": _TIMEOUT_MILLISECONDS,
        "excludeCredentials": _descriptors(known),
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": _verification(Ceremony.REGISTER),
        },
        "attestation": "none",
    }
    return Asked(options, passkey_challenges.write(ctx, challenge))


async def register(
    ctx: context.Context, login: logins.Login, answer: Answer, *, session_id: str, name: str
) -> tuple[passkeys.Passkey, list[str]]:
    """Store the passkey that an authenticator has made; returns recovery codes, too, if there were none."""
    party = _party(ctx)
    name = _checked_name(name)
    challenge = passkey_challenges.read(ctx, answer.cookie, Ceremony.REGISTER, session_id)
    verify = functools.partial(passkey_answers.verify_registration, answer.text, _expected(party, challenge))
    try:
        made = await ctx.threads.run(login.id, verify)
    except passkey_answers.AnswerError:
        raise refusal() from None
    now = ctx.clock()
    passkey = passkeys.Passkey(
        id=ctx.new_id(identifiers.PASSKEY, now=now),
        login_id=login.id,
        credential_id=made.id,
        public_key=made.public_key,
        sign_count=made.sign_count,
        user_handle=challenge.user_handle,
        rp_id=party.id,
        transports=" ".join(made.transports),
        name=name,
        created_at=now,
    )
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        await passkey_challenges.use(ctx, tx, challenge)
        _refuse_more(await passkeys.of_login(tx, login.id))
        if not await passkeys.insert(tx, passkey):
            raise errors.Conflict("this passkey is already registered")
        await second_factors.tell_added(ctx, tx, login, f"the passkey {name}")
        has_codes = (await stored_factors.of_login(tx, login.id)).recovery_codes > 0
        codes = [] if has_codes else await recovery_codes.renew(tx, login.id)
    ctx.access_cache.invalidate()
    return passkey, codes


async def ask(ctx: context.Context, ceremony: Ceremony, *, login_id: str | None = None, subject: str = "") -> Asked:
    """Ask for a passkey: of a login, or without one for any that the authenticator has."""
    party = _party(ctx)
    known = [] if login_id is None else await of_login(ctx, login_id)
    challenge = passkey_challenges.new(ctx, ceremony, subject)
    options = {
        "rpId": party.id,
        "challenge": passkey_challenges.encode(challenge.value),
        "timeout": _TIMEOUT_MILLISECONDS,
        "allowCredentials": _descriptors(known),
        "userVerification": _verification(ceremony),
    }
    return Asked(options, passkey_challenges.write(ctx, challenge))


async def check(
    ctx: context.Context, answer: Answer, ceremony: Ceremony, *, login_id: str | None = None, subject: str = ""
) -> passkeys.Passkey:
    """The passkey that gave this answer: one of the login, or any if none is given.

    A wrong answer in the name of a passkey is recorded as a failed login of its users.
    """
    challenge = passkey_challenges.read(ctx, answer.cookie, ceremony, subject)
    # Those who are not known yet take turns by network.
    whose = login_id or login_throttle.network_of(ctx.actor.client_address)
    try:
        assertion = await ctx.threads.run(whose, functools.partial(passkey_answers.read_assertion, answer.text))
    except passkey_answers.AnswerError:
        raise refusal() from None
    passkey = await _named(ctx, assertion, login_id=login_id)
    verify = functools.partial(
        passkey_answers.verify_assertion,
        assertion,
        _expected(_party(ctx), challenge),
        public_key=passkey.public_key,
        sign_count=passkey.sign_count,
    )
    try:
        sign_count = await ctx.threads.run(whose, verify)
    except passkey_answers.AnswerError:
        raise await _recorded_refusal(ctx, passkey) from None
    async with ctx.store.transaction() as tx:
        await passkey_challenges.use(ctx, tx, challenge)
        if not await passkeys.use(tx, passkey.id, sign_count=sign_count, now=ctx.clock()):
            raise refusal()
    return passkey


async def remove(ctx: context.Context, login: logins.Login, passkey_id: str) -> passkeys.Passkey:
    """Remove a passkey of a login."""
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        found = [one for one in await passkeys.of_login(tx, login.id) if one.id == passkey_id]
        if not found or not await passkeys.remove(tx, login.id, passkey_id):
            raise errors.NotFound("there is no such passkey")
        await second_factors.tell_removed(ctx, tx, login, f"the passkey {found[0].name}")
    ctx.access_cache.invalidate()
    return found[0]


def _party(ctx: context.Context) -> relying_party.RelyingParty:
    party = relying_party.of(ctx.settings)
    if party is None:
        raise errors.Conflict("passkeys need an https:// address with a host name; set http.base_url")
    return party


async def _named(
    ctx: context.Context, assertion: passkey_answers.Assertion, *, login_id: str | None
) -> passkeys.Passkey:
    """The passkey that an answer names; somebody who is not known yet must be named too (section 7.2, step 6)."""
    async with ctx.store.reading() as tx:
        found = await passkeys.by_credential(tx, assertion.credential_id)
    if found is None or found.rp_id != _party(ctx).id or found.login_id != (login_id or found.login_id):
        raise refusal()
    if assertion.user_handle != found.user_handle and (assertion.user_handle is not None or login_id is None):
        raise refusal()
    return found


async def _recorded_refusal(ctx: context.Context, passkey: passkeys.Passkey) -> errors.InvalidRequest:
    async with ctx.store.reading() as tx:
        services_login.audit_failure(ctx, await users.of_login(tx, passkey.login_id))
    return refusal()


def _expected(party: relying_party.RelyingParty, challenge: passkey_challenges.Challenge) -> passkey_answers.Expected:
    return passkey_answers.Expected(
        challenge=challenge.value,
        rp_id=party.id,
        origin=party.origin,
        needs_verification=_NEEDS_VERIFICATION[challenge.ceremony],
    )


def _verification(ceremony: Ceremony) -> str:
    return "required" if _NEEDS_VERIFICATION[ceremony] else "preferred"


def _descriptors(known: Sequence[passkeys.Passkey]) -> list[Mapping[str, Any]]:
    return [
        {
            "type": "public-key",
            "id": passkey_challenges.encode(passkey.credential_id),
            "transports": passkey.transports.split(),
        }
        for passkey in known
    ]


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        raise errors.InvalidRequest(f"name: must have 1 to {MAX_NAME_CHARACTERS} characters, without line breaks")
    return name


def _refuse_more(known: Sequence[passkeys.Passkey]) -> None:
    if len(known) >= MAX_PASSKEYS:
        raise errors.Conflict(f"a login has at most {MAX_PASSKEYS} passkeys; remove one first")


def refusal() -> errors.InvalidRequest:
    """The error for every answer that proves nothing."""
    return errors.InvalidRequest("this passkey was not accepted; try again, or use another way")
