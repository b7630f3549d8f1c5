"""From the login page to a provider and back: the authorization code flow (OpenID Connect Core 1.0 section 3.1).

What belongs to one attempt is in a signed cookie of the browser that began it, for ten minutes: `state` (RFC 6749
section 10.12), `nonce` and the verifier of PKCE (RFC 7636). So nobody else can finish the attempt, nor make another
browser finish it. Every connection has a redirect URI of its own, and `iss` is checked (RFC 9207): a response of one
provider never counts for another. Which provider somebody is sent to is decided by the domain of their email alone.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib import parse

import msgspec

from postroad import config, context, errors
from postroad.model.people import callers, login_rules
from postroad.model.units import identifiers, labels, times
from postroad.protocol.mime import address
from postroad.services import audit_log, usage_limits
from postroad.services.people import logins as auth_logins
from postroad.services.people import sso_connections, sso_providers, tokens
from postroad.storage.engine import store
from postroad.storage.people import accounts, credentials, sessions, users
from postroad.storage.people import sso as stored_sso

INSTALLATION: Final = stored_sso.INSTALLATION
BY_SSO: Final = "by single sign-on"


class Plan(msgspec.Struct, frozen=True):
    """What a connection does with the people who come: the account, its domains, and the roles."""

    account_id: str
    domains: Sequence[str]
    role: str
    roles: Mapping[str, str]
    creates_users: bool


class _Arrival(msgspec.Struct, frozen=True):
    """Somebody who comes: by which connection, and with which verified email."""

    plan: Plan
    person: login_rules.Person
    email: address.Mailbox


def plan_of(connection: sso_connections.Connection) -> Plan:
    """What the connection of an account does."""
    row = connection.row
    return Plan(row.account_id, connection.domains, row.role, row.roles, bool(row.creates_users))


def plan_of_installation(settings: config.Settings) -> Plan:
    """What the connection of the installation does."""
    stored_sso = settings.sso
    names = [address.parse_domain(name) for name in stored_sso.email_domains]
    return Plan(stored_sso.account, names, stored_sso.role, stored_sso.groups, bool(stored_sso.account))


def mailbox(plan: Plan, person: login_rules.Person) -> address.Mailbox:
    """The email that the provider vouches for, and may. Raises Forbidden, which says what to change."""
    if person.email is None:
        raise errors.Forbidden(
            "the provider does not say that your email is verified (email_verified)"
            if person.has_email
            else "the provider did not send your email; the ID token must have the claims email and email_verified"
        )
    try:
        found = address.parse(person.email)
    except address.AddressError:
        raise errors.Forbidden("the provider sent an email that is not an address") from None
    if found.display_name is not None or (plan.domains and found.domain not in plan.domains):
        raise errors.Forbidden("your email is not in a domain of this identity provider")
    return found


def role_of(plan: Plan, person: login_rules.Person) -> callers.Role:
    """The role that a person's groups give, or else that of newcomers."""
    named = (role for group, role in plan.roles.items() if group in person.groups and role != config.OPERATOR)
    return callers.Role(next(named, plan.role))


async def enter_account(ctx: context.Context, plan: Plan, person: login_rules.Person) -> users.Login:
    """The login of somebody for whom the provider of an account vouches."""
    arrival = _Arrival(plan, person, mailbox(plan, person))
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        await accounts.lock(tx, [plan.account_id])
        members = await users.of_account(tx, plan.account_id)
        user = await _known_member(tx, plan, person, members)
        is_new = user is None
        if user is None:
            user = next((member for member in members if address.key_of(member.email) == arrival.email.key), None)
            user = await _newcomer(ctx, tx, arrival, members) if user is None else user
            await _refuse_taken(tx, plan.account_id, person, user)
        if user.operator_since is not None:
            raise errors.Forbidden("operators of the installation cannot use the single sign-on of an account")
        if user.disabled_at is not None:
            raise errors.Forbidden("this user is disabled")
        before = user.login_id
        user = await _with_own_login(ctx, tx, user)
        if is_new or user.login_id != before:
            login_id, now = user.login_id or "", ctx.clock()
            bound = stored_sso.Identity(plan.account_id, person.issuer, person.subject, login_id, now)
            await stored_sso.put_identity(tx, bound)
            await audit_log.write(context.as_person(ctx, user.id), tx, user.account_id, "user.sso_bound", user.email)
        await _follow_groups(ctx, tx, arrival, user, members)
        login = await users.login_by_id(tx, user.login_id or "")
    ctx.access_cache.invalidate()
    return _existing(login)


async def enter_installation(ctx: context.Context, plan: Plan, person: login_rules.Person) -> users.Login:
    """The login of somebody for whom the provider of the installation vouches."""
    arrival = _Arrival(plan, person, mailbox(plan, person))
    if sso_connections.is_break_glass(ctx, arrival.email.address):
        raise errors.Forbidden("this login is for emergencies; use its password and second factor")
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        if plan.account_id and not await accounts.lock(tx, [plan.account_id]):
            raise errors.NotFound("sso.account names an account that does not exist")
        login = await _installation_login(ctx, tx, arrival)
        await _adopt(ctx, tx, arrival.email, login)
        if plan.creates_users:
            await _member_of_installation(ctx, tx, arrival, login)
        if not await users.of_login(tx, login.id):
            raise errors.Forbidden("you are not a user of an account here; ask an owner to invite you")
        found = await users.login_by_id(tx, login.id)
    ctx.access_cache.invalidate()
    return _existing(found)


async def _known_member(
    tx: store.Transaction, plan: Plan, person: login_rules.Person, members: Sequence[users.User]
) -> users.User | None:
    """The user that the subject was bound to, if they still belong to the account."""
    known = await stored_sso.find_identity(tx, plan.account_id, issuer=person.issuer, subject=person.subject)
    return None if known is None else next((member for member in members if member.login_id == known.login_id), None)


async def _newcomer(
    ctx: context.Context, tx: store.Transaction, arrival: _Arrival, members: Sequence[users.User]
) -> users.User:
    """A new user of the account of a connection."""
    plan, email = arrival.plan, arrival.email
    if not plan.creates_users:
        raise errors.Forbidden("you are not a user of this account; ask an owner to invite you")
    usage_limits.refuse_beyond_quota(ctx, "users", len(members))
    now = ctx.clock()
    user = users.User(
        id=ctx.new_id(identifiers.USER, now=now),
        account_id=plan.account_id,
        email=email.address,
        role=role_of(plan, arrival.person).value,
        tokens_valid_from=now,
        disabled_at=None,
        created_at=now,
    )
    if not await users.insert(tx, user, email_key=email.key):
        raise errors.Conflict("a user with this email was created at the same time; try again")
    await audit_log.write(ctx, tx, plan.account_id, "user.created", user.email, f"as {user.role}, {BY_SSO}")
    return user


async def _refuse_taken(tx: store.Transaction, connection: str, person: login_rules.Person, user: users.User) -> None:
    """Refuse an email whose user somebody else at the same provider is."""
    known = await stored_sso.identities_of_login(tx, user.login_id) if user.login_id is not None else []
    if any(identity.account_id == connection and identity.issuer == person.issuer for identity in known):
        raise errors.Forbidden("somebody else at your provider has logged in with this email before; ask an owner")


async def _with_own_login(ctx: context.Context, tx: store.Transaction, user: users.User) -> users.User:
    """The user with a login that reaches this account only."""
    login = await users.login_by_id(tx, user.login_id) if user.login_id is not None else None
    if login is not None and await users.lock_login(tx, login):
        is_elsewhere = any(not identity.account_id for identity in await stored_sso.identities_of_login(tx, login.id))
        if not is_elsewhere and len(await users.of_login(tx, login.id)) == 1:
            return user
    await sessions.remove_link(tx, user.id)
    return await auth_logins.give_new(ctx, tx, user, password_hash=None)


async def _follow_groups(
    ctx: context.Context,
    tx: store.Transaction,
    arrival: _Arrival,
    user: users.User,
    members: Sequence[users.User],
) -> None:
    """The role that the groups give now, if groups give roles. The last owner stays one."""
    role = role_of(arrival.plan, arrival.person)
    if not arrival.plan.roles or role == user.role:
        return
    owners = [
        member.id
        for member in members
        if member.role == callers.Role.OWNER and member.disabled_at is None and member.joined_at
    ]
    if owners == [user.id]:
        return
    await users.set_role(tx, user.id, role.value)
    await sessions.remove_link(tx, user.id)
    detail = f"{user.role} to {role}, {BY_SSO}"
    await audit_log.write(context.as_person(ctx, user.id), tx, user.account_id, "user.role_changed", user.email, detail)


async def _installation_login(ctx: context.Context, tx: store.Transaction, arrival: _Arrival) -> users.Login:
    """The login that the subject was bound to, or a new one."""
    person, email = arrival.person, arrival.email
    known = await stored_sso.find_identity(tx, INSTALLATION, issuer=person.issuer, subject=person.subject)
    login = await users.login_by_id(tx, known.login_id) if known is not None else None
    if login is not None:
        return login
    for user in await users.by_email(tx, email.key):
        await _refuse_taken(tx, INSTALLATION, person, user)
    now = ctx.clock()
    login = users.Login(ctx.new_id(identifiers.LOGIN, now=now), email.address, email.key, None, now, now)
    await users.insert_login(tx, login)
    await stored_sso.put_identity(tx, stored_sso.Identity(INSTALLATION, person.issuer, person.subject, login.id, now))
    return login


async def _adopt(ctx: context.Context, tx: store.Transaction, email: address.Mailbox, login: users.Login) -> None:
    """Give all users with this email to the person, also those who were invited. One of another provider stays."""
    for user in await users.by_email(tx, email.key):
        if user.login_id == login.id or user.disabled_at is not None:
            continue
        if user.login_id is not None and await stored_sso.identities_of_login(tx, user.login_id):
            continue
        await sessions.remove_link(tx, user.id)
        await auth_logins.give(ctx, tx, user, login_id=login.id)
        await audit_log.write(context.as_person(ctx, user.id), tx, user.account_id, "user.sso_bound", user.email)


async def _member_of_installation(
    ctx: context.Context, tx: store.Transaction, arrival: _Arrival, login: users.Login
) -> None:
    """The person as a user of the account that newcomers join, with the roles that their groups give."""
    plan, email = arrival.plan, arrival.email
    members = await users.of_account(tx, plan.account_id)
    user = next((member for member in members if member.login_id == login.id), None)
    if user is None:
        if any(address.key_of(member.email) == email.key for member in members):
            return  # disabled, or somebody else's
        user = await _newcomer(ctx, tx, arrival, members)
        await auth_logins.give(ctx, tx, user, login_id=login.id)
    if user.disabled_at is None:
        await _follow_groups(ctx, tx, arrival, user, members)
        await _follow_operator_groups(ctx, tx, arrival, user)


async def _follow_operator_groups(
    ctx: context.Context, tx: store.Transaction, arrival: _Arrival, user: users.User
) -> None:
    """Make the user an operator, or end it, if groups do. The last operator stays one."""
    groups = [group for group, role in arrival.plan.roles.items() if role == config.OPERATOR]
    is_operator = any(group in arrival.person.groups for group in groups)
    if not groups or is_operator == (user.operator_since is not None):
        return
    able = [
        operator.id
        for operator in await users.operators(tx)
        if operator.disabled_at is None and operator.joined_at is not None
    ]
    if able == [user.id]:
        return
    await users.set_operator(tx, user.id, since=ctx.clock() if is_operator else None)
    action = "operator.added" if is_operator else "operator.removed"
    await audit_log.write(context.as_person(ctx, user.id), tx, audit_log.INSTALLATION, action, user.email, BY_SSO)


def _existing(login: users.Login | None) -> users.Login:
    if login is None:
        raise errors.Conflict("this login was removed at the same time; try again")
    return login


# Long enough for a password and a second factor at the provider.
ATTEMPT_SECONDS: Final = 600
PURPOSE: Final = "sso"
MAX_CODE_CHARACTERS: Final = 4_096
MAX_ERROR_CHARACTERS: Final = 100


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

    registration: login_rules.Registration
    scopes: str
    groups_claim: str
    plan: Plan


class Completed(msgspec.Struct, frozen=True):
    """An attempt, and the person whom the provider vouches for."""

    attempt: Attempt
    plan: Plan
    person: login_rules.Person


async def connection_for(ctx: context.Context, email: str) -> str:
    """The connection for an email, by its domain alone: an account's id, or `INSTALLATION`. Raises InvalidRequest."""
    domain = labels.parse_mailbox("email", email).domain
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
    state, nonce, verifier = (tokens.new_secret() for _ in range(3))
    until = ctx.clock() // times.SECOND + ATTEMPT_SECONDS
    attempt = Attempt(account_id, is_test, state, nonce, verifier, next_path, until)
    query = {
        "response_type": "code",
        "client_id": chosen.registration.client_id,
        "redirect_uri": sso_connections.redirect_uri(ctx.settings, account_id),
        "scope": f"openid {chosen.scopes}".strip(),
        "state": state,
        "nonce": nonce,
        # S256 of RFC 7636 section 4.2.
        "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("="),
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
    await ctx.access_cache.login_failures.check(counters, now=ctx.clock())
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
            return await enter_installation(ctx, plan, person)
        return await enter_account(ctx, plan, person)
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
        plan = plan_of_installation(ctx.settings)
        return _Chosen(sso_connections.installation(ctx.settings), " ".join(sso.scopes), sso.groups_claim, plan)
    found = await sso_connections.usable(ctx, account_id)
    plan = plan_of(found)
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


def _with_query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{parse.urlencode(query)}"
