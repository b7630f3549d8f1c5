"""The single sign-on of an account: its provider and email domains, and who may come in without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import config, context, errors
from postroad.keys import encryption
from postroad.model.people import callers, login_rules
from postroad.model.units import labels
from postroad.protocol.mime import address
from postroad.services import audit_log
from postroad.services.people import second_factors
from postroad.storage.engine import store
from postroad.storage.mail import domains
from postroad.storage.people import accounts, credentials, sessions, sso, users

# Who may come in without single sign-on where passwords are switched off.
#
# The operator can switch them off for the installation, apart from one operator for emergencies (`sso.break_glass`),
# and the owners of an account for the people of its email domains, apart from owners. Both exceptions need a second
# factor.

# How a session began. At the command line, whoever makes a token has the installation.
SSO: Final = "sso"
OPERATOR: Final = "operator"


async def admits(ctx: context.Context, tx: store.Transaction, user: users.User, methods: str) -> bool:
    """Whether a person who has proved who they are by these methods may act for this user."""
    words = methods.split()
    if SSO in words or OPERATOR in words:
        return True
    has_factor = not second_factors.METHODS.isdisjoint(words)
    if not ctx.settings.sso.passwords:
        return has_factor and user.operator_since is not None and is_break_glass(ctx, user.email)
    connection = await sso.by_domain(tx, domain_of(user.email))
    if connection is None or connection.account_id != user.account_id or connection.allows_passwords:
        return True
    return has_factor and user.role == callers.Role.OWNER


def sso_required() -> errors.Forbidden:
    return errors.Forbidden("passwords are switched off here; log in with single sign-on")


def is_break_glass(ctx: context.Context, email: str) -> bool:
    return bool(ctx.settings.sso.break_glass) and address.key_of(ctx.settings.sso.break_glass) == address.key_of(email)


def domain_of(email: str) -> str:
    """The domain of an address, as domains are stored."""
    return address.key_of(email).rpartition("@")[2]


async def check_without_passwords(ctx: context.Context, tx: store.Transaction) -> None:
    """Refuse to switch passwords off unless an owner can still log in with one: the one who acts now."""
    if ctx.actor.kind is callers.ActorKind.OPERATOR:
        return
    token_id = None if ctx.actor.who is None else ctx.actor.who.token_id
    session = await sessions.by_id(tx, token_id) if token_id is not None else None
    if session is None or second_factors.METHODS.isdisjoint(session.methods.split()):
        raise errors.Conflict(
            "allows_passwords: log in with your password and a second factor first, so that an owner can still log in "
            "when the provider is down"
        )


async def check_without_connection(ctx: context.Context, tx: store.Transaction, account_id: str) -> None:
    """Refuse to remove the connection of an account unless an owner can log in without it."""
    if ctx.actor.kind is callers.ActorKind.OPERATOR:
        return
    for user in await users.of_account(tx, account_id):
        if user.role == callers.Role.OWNER and user.disabled_at is None and await _has_other_way(tx, user):
            return
    raise errors.Conflict(
        "no owner could log in without single sign-on; create a password link for another owner first, or ask the "
        "operator of this service"
    )


async def _has_other_way(tx: store.Transaction, user: users.User) -> bool:
    login = await users.login_by_id(tx, user.login_id) if user.login_id is not None else None
    if login is None:
        return False
    identities = await sso.identities_of_login(tx, login.id)
    return login.password_hash is not None or any(not identity.account_id for identity in identities)


MAX_DOMAINS: Final = 20
MAX_GROUPS: Final = 50
MAX_CHARACTERS: Final = 500
# The installation in paths, in the place of an account.
INSTALLATION_NAME: Final = "installation"
DEFAULT_SCOPES: Final = "email"
DEFAULT_GROUPS_CLAIM: Final = "groups"
_WORD: Final = frozenset(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What an owner enters. Without a secret the connection keeps the one that it has; empty: none."""

    issuer: str
    client_id: str
    client_secret: str | None = None
    domains: Sequence[str]
    scopes: str = DEFAULT_SCOPES
    role: callers.Role = callers.Role.READ_ONLY
    groups_claim: str = DEFAULT_GROUPS_CLAIM
    groups: Mapping[str, callers.Role]
    creates_users: bool = False
    allows_passwords: bool = True

    def __repr__(self) -> str:
        return f"Draft(issuer={self.issuer!r})"


class Connection(msgspec.Struct, frozen=True):
    """The connection of an account, and its email domains."""

    row: sso.Connection
    domains: Sequence[str]


async def find(ctx: context.Context, account_id: str) -> Connection | None:
    async with ctx.store.reading() as tx:
        row = await sso.of_account(tx, account_id)
        return None if row is None else Connection(row, await sso.domains(tx, account_id))


async def save(ctx: context.Context, account_id: str, draft: Draft) -> Connection:
    names = _check(ctx, draft)
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        await accounts.lock(tx, [account_id])
        for name in names:
            await _check_domain(ctx, tx, account_id, name)
        before = await sso.of_account(tx, account_id)
        if before is not None and before.issuer != draft.issuer:
            await _end_sso_sessions(ctx, tx, account_id)
        if not draft.allows_passwords:
            await check_without_passwords(ctx, tx)
            await _end_local_sessions(ctx, tx, account_id, names)
        row = sso.Connection(
            account_id=account_id,
            issuer=draft.issuer,
            client_id=draft.client_id,
            client_secret=_sealed(ctx, account_id, draft, before),
            scopes=" ".join(draft.scopes.split()),
            role=draft.role.value,
            groups_claim=draft.groups_claim,
            group_roles=msgspec.json.encode(draft.groups).decode(),
            creates_users=int(draft.creates_users),
            allows_passwords=int(draft.allows_passwords),
            created_at=now if before is None else before.created_at,
            updated_at=now,
        )
        await sso.put(tx, row, names)
        action = "sso.connected" if before is None else "sso.changed"
        await audit_log.write(ctx, tx, account_id, action, _host(draft.issuer), f"for {', '.join(names)}")
    ctx.access_cache.invalidate()
    return Connection(row, names)


async def remove(ctx: context.Context, account_id: str) -> None:
    """Remove the connection of an account, and end the sessions that began by it.

    Somebody must be able to log in without it.
    """
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        await accounts.lock(tx, [account_id])
        row = await sso.of_account(tx, account_id)
        if row is None:
            raise errors.NotFound("this account has no single sign-on")
        await check_without_connection(ctx, tx, account_id)
        await _end_sso_sessions(ctx, tx, account_id)
        await sso.remove(tx, account_id)
        await audit_log.write(ctx, tx, account_id, "sso.removed", _host(row.issuer))
    ctx.access_cache.invalidate()


async def usable(ctx: context.Context, account_id: str) -> Connection:
    """The connection of an account, with those of its domains that are still verified. Raises InvalidRequest."""
    found = await find(ctx, account_id)
    if found is None:
        raise errors.InvalidRequest("this account has no single sign-on")
    async with ctx.store.reading() as tx:
        named = [
            domain
            for domain in found.domains
            if not is_reserved(ctx, domain) and await domains.verified_owner(tx, domain) == account_id
        ]
    if not named:
        raise errors.InvalidRequest("none of the email domains of this single sign-on is verified any more")
    return Connection(found.row, named)


def registration(ctx: context.Context, row: sso.Connection) -> login_rules.Registration:
    """How Postroad is registered at the provider of a connection."""
    secret = ""
    if row.client_secret is not None:
        owner = encryption.sso_owner(row.account_id)
        secret = encryption.decrypt(ctx.keys.encryption, row.client_secret, owner=owner).decode()
    return login_rules.Registration(row.issuer, row.client_id, secret, is_trusted=False)


def installation(settings: config.Settings) -> login_rules.Registration:
    """How Postroad is registered at the provider of the installation."""
    secret = config.sso_client_secret(settings.sso)
    return login_rules.Registration(settings.sso.issuer, settings.sso.client_id, secret, is_trusted=True)


def redirect_uri(settings: config.Settings, account_id: str) -> str:
    """Where a provider sends browsers back to. One of its own for each connection: no provider can mix them up."""
    return f"{config.base_url(settings)}/sso/{account_id or INSTALLATION_NAME}/callback"


def log_out_uri(settings: config.Settings) -> str:
    """Where a provider sends browsers after it has logged them out."""
    return f"{config.base_url(settings)}/login"


def _check(ctx: context.Context, draft: Draft) -> Sequence[str]:
    """The email domains, normalized; raises InvalidRequest."""
    is_local = ctx.settings.webhooks.allow_insecure
    if not config.is_issuer(draft.issuer) or not (is_local or draft.issuer.startswith("https://")):
        raise errors.InvalidRequest("issuer: write the URL of your provider, https:// and a host, without a query")
    for name, text in (("issuer", draft.issuer), ("client_id", draft.client_id), ("groups_claim", draft.groups_claim)):
        if not 0 < len(text) <= MAX_CHARACTERS or not set(text) <= _WORD:
            raise errors.InvalidRequest(f"{name}: write 1 to {MAX_CHARACTERS} characters of ASCII without spaces")
    for name, text in (("client_secret", draft.client_secret or ""), ("scopes", draft.scopes)):
        if len(text) > MAX_CHARACTERS or not set(text) <= _WORD | {" "}:
            raise errors.InvalidRequest(f"{name}: write at most {MAX_CHARACTERS} characters of ASCII")
    if len(draft.groups) > MAX_GROUPS or any(not 0 < len(group) <= MAX_CHARACTERS for group in draft.groups):
        raise errors.InvalidRequest(f"groups: name at most {MAX_GROUPS} groups, of at most {MAX_CHARACTERS} characters")
    if not 0 < len(draft.domains) <= MAX_DOMAINS:
        raise errors.InvalidRequest(f"domains: name at least one email domain, and at most {MAX_DOMAINS}")
    return sorted({labels.parse_domain("domains", name) for name in draft.domains})


async def _check_domain(ctx: context.Context, tx: store.Transaction, account_id: str, name: str) -> None:
    if is_reserved(ctx, name):
        raise errors.Conflict(f"domains: people of {name} use the single sign-on of this installation")
    if await domains.verified_owner(tx, name) != account_id:
        raise errors.Conflict(f"domains: {name} is not a verified domain of this account; add and verify it first")


async def _end_local_sessions(
    ctx: context.Context, tx: store.Transaction, account_id: str, names: Sequence[str]
) -> None:
    """End the sessions of people of these domains that began without single sign-on; the acting one goes on."""
    acting = _acting_session(ctx)
    for user in await users.of_account(tx, account_id):
        if domain_of(user.email) in names:
            await sso.end_local_sessions(tx, user.id, but=acting)


async def _end_sso_sessions(ctx: context.Context, tx: store.Transaction, account_id: str) -> None:
    """End the sessions that a provider has vouched for, whom the account trusts no longer; the acting one goes on."""
    for user in await users.of_account(tx, account_id):
        if user.login_id is not None and await sso.is_of_account(tx, user.login_id):
            await sso.end_sso_sessions(tx, user.id, but=_acting_session(ctx))


def _acting_session(ctx: context.Context) -> str:
    return (None if ctx.actor.who is None else ctx.actor.who.token_id) or ""


def is_reserved(ctx: context.Context, domain: str) -> bool:
    """Whether the people of a domain use the provider of the installation, whatever an account says."""
    return domain in {address.parse_domain(email_domain) for email_domain in ctx.settings.sso.email_domains}


def _sealed(ctx: context.Context, account_id: str, draft: Draft, before: sso.Connection | None) -> bytes | None:
    if draft.client_secret is None:
        if before is not None and before.client_secret is not None and before.issuer != draft.issuer:
            # It would be sent to somebody whom it was not made for.
            raise errors.InvalidRequest("client_secret: the issuer has changed; enter the secret again")
        return None if before is None else before.client_secret
    if not draft.client_secret:
        return None
    nonce = ctx.entropy(encryption.NONCE_BYTES)
    owner = encryption.sso_owner(account_id)
    return encryption.encrypt(ctx.keys.encryption, draft.client_secret.encode(), owner=owner, nonce=nonce)


def _host(issuer: str) -> str:
    return issuer.partition("://")[2].partition("/")[0]
