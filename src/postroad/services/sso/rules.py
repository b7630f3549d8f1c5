"""Who may come in without single sign-on where passwords are switched off.

The operator can switch them off for the installation, apart from one operator for emergencies (`sso.break_glass`), and
the owners of an account for the people of its email domains, apart from owners. Both exceptions need a second factor.
"""

from typing import Final

from postroad import errors
from postroad.model import actors, caller
from postroad.protocol import address
from postroad.services import context
from postroad.services.auth import second_factors
from postroad.storage import logins, sessions, sso_connections, sso_identities, store, users

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
    connection = await sso_connections.by_domain(tx, domain_of(user.email))
    if connection is None or connection.account_id != user.account_id or connection.allows_passwords:
        return True
    return has_factor and user.role == caller.Role.OWNER


def refusal() -> errors.Forbidden:
    """The error for somebody with the right password."""
    return errors.Forbidden("passwords are switched off here; log in with single sign-on")


def is_break_glass(ctx: context.Context, email: str) -> bool:
    """Whether this is the email of the operator for emergencies."""
    return bool(ctx.settings.sso.break_glass) and address.key_of(ctx.settings.sso.break_glass) == address.key_of(email)


def domain_of(email: str) -> str:
    """The domain of an address, as domains are stored."""
    return address.key_of(email).rpartition("@")[2]


async def check_without_passwords(ctx: context.Context, tx: store.Transaction) -> None:
    """Refuse to switch passwords off unless an owner can still log in with one: the one who acts now."""
    if ctx.actor.kind is actors.Kind.OPERATOR:
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
    if ctx.actor.kind is actors.Kind.OPERATOR:
        return
    for user in await users.of_account(tx, account_id):
        if user.role == caller.Role.OWNER and user.disabled_at is None and await _has_other_way(tx, user):
            return
    raise errors.Conflict(
        "no owner could log in without single sign-on; create a password link for another owner first, or ask the "
        "operator of this service"
    )


async def _has_other_way(tx: store.Transaction, user: users.User) -> bool:
    login = await logins.by_id(tx, user.login_id) if user.login_id is not None else None
    if login is None:
        return False
    identities = await sso_identities.of_login(tx, login.id)
    return login.password_hash is not None or any(not one.account_id for one in identities)
