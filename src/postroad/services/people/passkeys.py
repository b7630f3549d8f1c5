"""Passkeys: discoverable credentials of Web Authentication, which prove a login without a secret that we store.

A passkey belongs to a login, and so to all accounts of its person. No attestation is asked for: any authenticator will
do. The count of an authenticator that counts must rise, otherwise it may have been copied. All answers that prove
nothing get the same error.
"""

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final
from urllib import parse

import msgspec

from postroad import config, context, errors
from postroad.config import addresses
from postroad.model.people import login_rules
from postroad.model.units import identifiers, times
from postroad.protocol.signatures import passkey_answers
from postroad.services.people import logins as services_login
from postroad.services.people import second_factors as people_second_factors
from postroad.services.people import tokens
from postroad.storage.engine import store
from postroad.storage.people import credentials, second_factors, users
from postroad.storage.people import second_factors as stored_second_factors

# Challenges that an authenticator is to sign (Web Authentication Level 2, section 13.4.3).
#
# A challenge is random, and is kept in a signed cookie with what it is for: the ceremony, and the session or the
# pending login that asked for it. So nothing is stored for somebody who only asks, and an answer that was given in one
# browser is worth nothing in another. A challenge that was answered is stored until it expires, so it is answered once,
# on whichever host.

# Long enough to fetch a security key from another room.
CHALLENGE_SECONDS: Final = 300
CHALLENGE_BYTES: Final = 32
_PURPOSE: Final = "passkey"


class Ceremony(StrEnum):
    REGISTER = "register"
    LOG_IN = "log in"
    SECOND_FACTOR = "second factor"
    CONFIRM = "confirm"


class Challenge(msgspec.Struct, frozen=True):
    """A challenge, who asked for it, and until when it is valid, in seconds since 1970.

    `subject` is the id of a session or of a pending login; it is empty for somebody who is not known yet. A passkey
    that is registered gets `user_handle`.
    """

    value: bytes
    ceremony: Ceremony
    subject: str
    until: int
    user_handle: bytes = b""

    @property
    def hash(self) -> bytes:
        return hashlib.sha256(self.value).digest()


def new_challenge(ctx: context.Context, ceremony: Ceremony, subject: str, *, user_handle: bytes = b"") -> Challenge:
    until = ctx.clock() // times.SECOND + CHALLENGE_SECONDS
    return Challenge(ctx.entropy(CHALLENGE_BYTES), ceremony, subject, until, user_handle)


def write_challenge(ctx: context.Context, challenge: Challenge) -> str:
    return tokens.write_value(ctx, challenge, purpose=_PURPOSE)


def read_challenge(ctx: context.Context, text: str | None, ceremony: Ceremony, subject: str) -> Challenge:
    """The challenge of a cookie, if it is for this ceremony of this session or pending login."""
    challenge = tokens.read_value(ctx, text, Challenge, purpose=_PURPOSE) if text else None
    if challenge is None or (challenge.ceremony, challenge.subject) != (ceremony, subject):
        raise challenge_expired()
    if ctx.clock() >= challenge.until * times.SECOND:
        raise challenge_expired()
    return challenge


async def use_challenge(ctx: context.Context, tx: store.Transaction, challenge: Challenge) -> None:
    expires_at = challenge.until * times.SECOND
    if not await second_factors.use_challenge(tx, challenge.hash, expires_at=expires_at, now=ctx.clock()):
        raise challenge_expired()


def encode(value: bytes) -> str:
    """Bytes as browsers exchange them: base64url without padding (RFC 4648 section 5)."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def challenge_expired() -> errors.InvalidRequest:
    return errors.InvalidRequest("this request for a passkey has expired or was used; try again")


# The relying party of Web Authentication, which passkeys are created for: from the configured URL, never from a Host.
#
# A passkey belongs to the host name. Where that changes, browsers no longer offer the passkeys of the old one, and we
# refuse them (docs/second-factor.md).

LOCAL_HOST: Final = "localhost"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class RelyingParty(msgspec.Struct, frozen=True):
    """`id` is a host name; `origin` is that of our pages, as browsers write it."""

    id: str
    origin: str


def relying_party(settings: config.Settings) -> RelyingParty | None:
    """The relying party of the configured URL; without one, localhost. None where browsers have no passkeys.

    They have them for host names, not addresses, on pages with TLS or on localhost (sections 5.1.3 and 5.1.4.1).
    """
    public = config.public_url(settings)
    parts = parse.urlsplit(public or config.local_url(settings))
    host = (parts.hostname or "") if public else LOCAL_HOST
    if addresses.is_address(host) or (parts.scheme != "https" and host != LOCAL_HOST):
        return None
    port = "" if parts.port in {None, _DEFAULT_PORTS[parts.scheme]} else f":{parts.port}"
    return RelyingParty(host, f"{parts.scheme}://{host}{port}")


# A few devices, a security key and its spare, with room.
MAX_PASSKEYS: Final = 20
MAX_NAME_CHARACTERS: Final = 64
# Section 14.6.1 suggests 64 random bytes; 32 are as unguessable.
USER_HANDLE_BYTES: Final = 32
# What a browser shows as the service.
NAME: Final = "Postroad"
_TIMEOUT_MILLISECONDS: Final = CHALLENGE_SECONDS * 1_000
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


async def of_login(ctx: context.Context, login_id: str) -> list[stored_second_factors.Passkey]:
    async with ctx.store.reading() as tx:
        return await stored_second_factors.passkeys(tx, login_id)


async def ask_to_register(ctx: context.Context, login: users.Login, *, session_id: str) -> Asked:
    """Ask a logged-in person for a new passkey, from an authenticator that has none for this login."""
    party = _party(ctx)
    known = await of_login(ctx, login.id)
    _refuse_more(known)
    # All passkeys of a login have one handle, so that an authenticator keeps one of them.
    handle = known[0].user_handle if known else ctx.entropy(USER_HANDLE_BYTES)
    challenge = new_challenge(ctx, Ceremony.REGISTER, session_id, user_handle=handle)
    options = {
        "rp": {"id": party.id, "name": NAME},
        "user": {"id": encode(handle), "name": login.email, "displayName": login.email},
        "challenge": encode(challenge.value),
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
    return Asked(options, write_challenge(ctx, challenge))


async def register(
    ctx: context.Context, login: users.Login, answer: Answer, *, session_id: str, name: str
) -> tuple[stored_second_factors.Passkey, list[str]]:
    """Store the passkey that an authenticator has made; returns recovery codes, too, if there were none."""
    party = _party(ctx)
    name = _checked_name(name)
    challenge = read_challenge(ctx, answer.cookie, Ceremony.REGISTER, session_id)
    verify = functools.partial(passkey_answers.verify_registration, answer.text, _expected(party, challenge))
    try:
        made = await ctx.threads.run(login.id, verify)
    except passkey_answers.AnswerError:
        raise refusal() from None
    now = ctx.clock()
    passkey = stored_second_factors.Passkey(
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
        await credentials.bump_access_version(tx)
        await use_challenge(ctx, tx, challenge)
        _refuse_more(await stored_second_factors.passkeys(tx, login.id))
        if not await stored_second_factors.insert_passkey(tx, passkey):
            raise errors.Conflict("this passkey is already registered")
        await people_second_factors.tell_added(ctx, tx, login, f"the passkey {name}")
        has_codes = (await stored_second_factors.of_login(tx, login.id)).recovery_codes > 0
        codes = [] if has_codes else await people_second_factors.renew_recovery_codes(tx, login.id)
    ctx.access_cache.invalidate()
    return passkey, codes


async def ask(ctx: context.Context, ceremony: Ceremony, *, login_id: str | None = None, subject: str = "") -> Asked:
    """Ask for a passkey: of a login, or without one for any that the authenticator has."""
    party = _party(ctx)
    known = [] if login_id is None else await of_login(ctx, login_id)
    challenge = new_challenge(ctx, ceremony, subject)
    options = {
        "rpId": party.id,
        "challenge": encode(challenge.value),
        "timeout": _TIMEOUT_MILLISECONDS,
        "allowCredentials": _descriptors(known),
        "userVerification": _verification(ceremony),
    }
    return Asked(options, write_challenge(ctx, challenge))


async def check(
    ctx: context.Context, answer: Answer, ceremony: Ceremony, *, login_id: str | None = None, subject: str = ""
) -> stored_second_factors.Passkey:
    """The passkey that gave this answer: one of the login, or any if none is given.

    A wrong answer in the name of a passkey is recorded as a failed login of its users.
    """
    challenge = read_challenge(ctx, answer.cookie, ceremony, subject)
    # Those who are not known yet take turns by network.
    whose = login_id or login_rules.network_of(ctx.actor.client_address)
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
        async with ctx.store.reading() as tx:
            services_login.audit_failure(ctx, await users.of_login(tx, passkey.login_id))
        raise refusal() from None
    async with ctx.store.transaction() as tx:
        await use_challenge(ctx, tx, challenge)
        if not await stored_second_factors.use_passkey(tx, passkey.id, sign_count=sign_count, now=ctx.clock()):
            raise refusal()
    return passkey


async def remove(ctx: context.Context, login: users.Login, passkey_id: str) -> stored_second_factors.Passkey:
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        found = [passkey for passkey in await stored_second_factors.passkeys(tx, login.id) if passkey.id == passkey_id]
        if not found or not await stored_second_factors.remove_passkey(tx, login.id, passkey_id):
            raise errors.NotFound("there is no such passkey")
        await people_second_factors.tell_removed(ctx, tx, login, f"the passkey {found[0].name}")
    ctx.access_cache.invalidate()
    return found[0]


def _party(ctx: context.Context) -> RelyingParty:
    party = relying_party(ctx.settings)
    if party is None:
        raise errors.Conflict("passkeys need an https:// address with a host name; set http.base_url")
    return party


async def _named(
    ctx: context.Context, assertion: passkey_answers.Assertion, *, login_id: str | None
) -> stored_second_factors.Passkey:
    """The passkey that an answer names; somebody who is not known yet must be named too (section 7.2, step 6)."""
    async with ctx.store.reading() as tx:
        found = await stored_second_factors.passkey_by_credential(tx, assertion.credential_id)
    if found is None or found.rp_id != _party(ctx).id or found.login_id != (login_id or found.login_id):
        raise refusal()
    if assertion.user_handle != found.user_handle and (assertion.user_handle is not None or login_id is None):
        raise refusal()
    return found


def _expected(party: RelyingParty, challenge: Challenge) -> passkey_answers.Expected:
    return passkey_answers.Expected(
        challenge=challenge.value,
        rp_id=party.id,
        origin=party.origin,
        needs_verification=_NEEDS_VERIFICATION[challenge.ceremony],
    )


def _verification(ceremony: Ceremony) -> str:
    return "required" if _NEEDS_VERIFICATION[ceremony] else "preferred"


def _descriptors(known: Sequence[stored_second_factors.Passkey]) -> list[Mapping[str, Any]]:
    return [
        {
            "type": "public-key",
            "id": encode(passkey.credential_id),
            "transports": passkey.transports.split(),
        }
        for passkey in known
    ]


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        raise errors.InvalidRequest(f"name: must have 1 to {MAX_NAME_CHARACTERS} characters, without line breaks")
    return name


def _refuse_more(known: Sequence[stored_second_factors.Passkey]) -> None:
    if len(known) >= MAX_PASSKEYS:
        raise errors.Conflict(f"a login has at most {MAX_PASSKEYS} passkeys; remove one first")


def refusal() -> errors.InvalidRequest:
    """The error for every answer that proves nothing."""
    return errors.InvalidRequest("this passkey was not accepted; try again, or use another sign-in method")


async def log_in(ctx: context.Context, answer: Answer, *, device: str) -> services_login.LoggedIn:
    """Begin a session. Raises RateLimited after several failures from the network of the actor."""
    failures, counters = ctx.access_cache.login_failures, login_rules.of_network(ctx.actor.client_address)
    await failures.check(counters, now=ctx.clock())
    passkey = await check(ctx, answer, Ceremony.LOG_IN)
    await failures.withdraw(counters, now=ctx.clock())
    async with ctx.store.reading() as tx:
        found = await users.login_by_id(tx, passkey.login_id)
    if found is None:
        raise refusal()
    return await services_login.finish(ctx, found, methods=people_second_factors.PASSKEY, device=device)
