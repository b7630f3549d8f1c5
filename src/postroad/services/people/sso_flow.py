"""From the login page to a provider and back: the authorization code flow (OpenID Connect Core 1.0 section 3.1).

What belongs to one attempt is in a signed cookie of the browser that began it, for ten minutes: `state` (RFC 6749
section 10.12), `nonce` and the verifier of PKCE (RFC 7636). So nobody else can finish the attempt, nor make another
browser finish it. Every connection has a redirect URI of its own, and `iss` is checked (RFC 9207): a response of one
provider never counts for another. Which provider somebody is sent to is decided by the domain of their email alone.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib import parse

import msgspec

from postroad import context, errors
from postroad.keys import installation_keys
from postroad.model.people import identity_providers, login_rules
from postroad.model.units import times
from postroad.protocol.mime import address
from postroad.services import audit_log
from postroad.services.people import sso_connections, sso_members, sso_providers, tokens
from postroad.storage.people import sso as stored_sso
from postroad.storage.people import users

# Long enough for a password and a second factor at the provider.
ATTEMPT_SECONDS: Final = 600
PURPOSE: Final = "sso"
# 43 characters of 62 are 256 bits; a verifier must have at least as many (RFC 7636 section 4.1).
RANDOM_CHARACTERS: Final = 43
MAX_CODE_CHARACTERS: Final = 4_096
MAX_ERROR_CHARACTERS: Final = 100
INSTALLATION: Final = stored_sso.INSTALLATION


class Attempt(msgspec.Struct, frozen=True):
    """A login, or a test, that a browser has begun: at which connection, and what its response must prove."""

    account_id: str
    is_test: bool
    state: str
    nonce: str
    verifier: str
    next: str
    until: int


@dataclass(frozen=True, slots=True)
class Begun:
    """Where to send the browser, and what it must keep until it returns."""

    url: str
    cookie: str = field(repr=False)


class _Chosen(msgspec.Struct, frozen=True):
    """A connection: how we are registered there, what we ask for, and what we do with those who come."""

    registration: identity_providers.Registration
    scopes: str
    groups_claim: str
    plan: sso_members.Plan


class Completed(msgspec.Struct, frozen=True):
    """An attempt, and the person whom the provider vouches for."""

    attempt: Attempt
    plan: sso_members.Plan
    person: identity_providers.Person


async def connection_for(ctx: context.Context, email: str) -> str:
    """The connection for an email, by its domain alone: an account's id, or `INSTALLATION`. Raises InvalidRequest."""
    try:
        domain = address.parse(email).domain
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"email: {problem}") from None
    sso = ctx.settings.sso
    is_listed = sso_connections.is_reserved(ctx, domain)
    if not is_listed:
        async with ctx.store.reading() as tx:
            found = await stored_sso.by_domain(tx, domain)
        if found is not None:
            return found.account_id
    if sso.issuer and (is_listed or not sso.email_domains):
        return INSTALLATION
    raise errors.InvalidRequest(f"email: there is no single sign-on for {domain}; log in with your password")


async def begin(
    ctx: context.Context, account_id: str, *, next_path: str, login_hint: str = "", is_test: bool = False
) -> Begun:
    """Begin an attempt. Raises InvalidRequest when the provider cannot be used."""
    chosen = await _chosen(ctx, account_id)
    try:
        metadata = await ctx.sso_providers.metadata(chosen.registration)
    except sso_providers.ProviderError as problem:
        raise _unusable(problem) from None
    state, nonce, verifier = (installation_keys.random_text(RANDOM_CHARACTERS) for _ in range(3))
    until = ctx.clock() // times.SECOND + ATTEMPT_SECONDS
    attempt = Attempt(account_id, is_test, state, nonce, verifier, next_path, until)
    query = {
        "response_type": "code",
        "client_id": chosen.registration.client_id,
        "redirect_uri": sso_connections.redirect_uri(ctx.settings, account_id),
        "scope": f"openid {chosen.scopes}".strip(),
        "state": state,
        "nonce": nonce,
        "code_challenge": _challenge(verifier),
        "code_challenge_method": "S256",
        **({"login_hint": login_hint} if login_hint else {}),
    }
    url = _with_query(metadata.authorization_endpoint, query)
    return Begun(url, tokens.write_value(ctx, attempt, purpose=PURPOSE))


async def complete(
    ctx: context.Context, account_id: str, *, cookie: str | None, answer: Mapping[str, str]
) -> Completed:
    """Whom the provider vouches for in its answer, the query of the redirect. Raises InvalidRequest or Forbidden."""
    attempt = None if cookie is None else tokens.read_value(ctx, cookie, Attempt, purpose=PURPOSE)
    is_ours = attempt is not None and hmac.compare_digest(attempt.state.encode(), answer.get("state", "").encode())
    is_over = attempt is None or attempt.until <= ctx.clock() // times.SECOND
    if attempt is None or not is_ours or is_over or attempt.account_id != account_id:
        raise errors.InvalidRequest(
            "this login was started in another browser or window, took too long, or has already ended; start again"
        )
    # Whoever tries codes, or tokens, is slowed like one who tries passwords.
    counters = login_rules.of_network(ctx.actor.client_address)
    seconds = await ctx.access_cache.login_failures.attempt(counters, now=ctx.clock())
    if seconds:
        raise errors.RateLimited(f"too many failed attempts; try again in {seconds} seconds", retry_after=seconds)
    chosen = await _chosen(ctx, account_id)
    try:
        await _check_answer(ctx, chosen, answer)
        text = await ctx.sso_providers.exchange(
            chosen.registration,
            code=answer["code"],
            verifier=attempt.verifier,
            redirect_uri=sso_connections.redirect_uri(ctx.settings, account_id),
        )
        person = await ctx.sso_providers.verify(
            chosen.registration,
            text,
            nonce=attempt.nonce,
            groups_claim=chosen.groups_claim,
            now=ctx.clock() // times.SECOND,
        )
    except sso_providers.ProviderError as problem:
        await _audit_refusal(ctx, account_id, chosen.registration.issuer, str(problem))
        raise _unusable(problem) from None
    except sso_providers.TokenRefused as problem:
        await _audit_refusal(ctx, account_id, chosen.registration.issuer, f"ID token: {problem}")
        raise errors.Forbidden(f"the provider's ID token was refused: {problem}") from None
    await ctx.access_cache.login_failures.withdraw(counters, now=ctx.clock())
    return Completed(attempt, chosen.plan, person)


async def enter(ctx: context.Context, completed: Completed) -> users.Login:
    """The login of the person. Raises Forbidden, which says what to change."""
    plan, person = completed.plan, completed.person
    account_id = completed.attempt.account_id
    try:
        if account_id == INSTALLATION:
            return await sso_members.enter_installation(ctx, plan, person)
        return await sso_members.enter_account(ctx, plan, person)
    except errors.Forbidden as refusal:
        await _audit_refusal(ctx, account_id, person.email or person.issuer, refusal.message)
        raise


async def log_out_url(ctx: context.Context, login_id: str) -> str | None:
    """Where to end the session at the provider of a login (OpenID Connect RP-Initiated Logout 1.0), if there is one."""
    async with ctx.store.reading() as tx:
        known = await stored_sso.identities_of_login(tx, login_id)
    if not known:
        return None
    try:
        chosen = await _chosen(ctx, known[0].account_id)
        metadata = await ctx.sso_providers.metadata(chosen.registration)
    except (errors.InvalidRequest, sso_providers.ProviderError):
        return None
    if not metadata.end_session_endpoint:
        return None
    query = {
        "client_id": chosen.registration.client_id,
        "post_logout_redirect_uri": sso_connections.log_out_uri(ctx.settings),
    }
    return _with_query(metadata.end_session_endpoint, query)


async def _chosen(ctx: context.Context, account_id: str) -> _Chosen:
    sso = ctx.settings.sso
    if account_id == INSTALLATION:
        if not sso.issuer:
            raise errors.InvalidRequest("this installation has no single sign-on")
        plan = sso_members.plan_of_installation(ctx.settings)
        return _Chosen(sso_connections.installation(ctx.settings), " ".join(sso.scopes), sso.groups_claim, plan)
    found = await sso_connections.usable(ctx, account_id)
    plan = sso_members.plan_of(found)
    return _Chosen(sso_connections.registration(ctx, found.row), found.row.scopes, found.row.groups_claim, plan)


async def _check_answer(ctx: context.Context, chosen: _Chosen, answer: Mapping[str, str]) -> None:
    """The answer is from this provider (RFC 9207 section 2.4), and has a code."""
    metadata = await ctx.sso_providers.metadata(chosen.registration)
    is_missing = "iss" not in answer and metadata.authorization_response_iss_parameter_supported
    if is_missing or answer.get("iss", chosen.registration.issuer) != chosen.registration.issuer:
        raise sso_providers.ProviderError("the response is from another provider")
    if "error" in answer:
        said = answer["error"][:MAX_ERROR_CHARACTERS]
        raise sso_providers.ProviderError(
            f"it responded: {said}" if said.isascii() and said.isprintable() else "it refused"
        )
    if not 0 < len(answer.get("code", "")) <= MAX_CODE_CHARACTERS:
        raise sso_providers.ProviderError("the response has no code")


async def _audit_refusal(ctx: context.Context, account_id: str, subject: str, why: str) -> None:
    """Record a refusal, as often as failed logins of one user: strangers can cause any number of them."""
    counters = login_rules.of_audit(f"sso {account_id}")
    if await ctx.access_cache.login_failures.attempt(counters, now=ctx.clock()):
        return
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, account_id or audit_log.INSTALLATION, "sso.refused", subject, why)


def _unusable(problem: sso_providers.ProviderError) -> errors.InvalidRequest:
    return errors.InvalidRequest(f"the provider cannot be used now: {problem}")


def _challenge(verifier: str) -> str:
    """S256 of RFC 7636 section 4.2."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def _with_query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{parse.urlencode(query)}"
