"""What a user logs in with: a login of their own, or one that they also use for other accounts.

Whoever manages one account must not reach into another: a password that is set for the user of one account may change a
login only if no other account uses it (`is_shared`), or for an operator.
"""

from postroad.model import identifiers
from postroad.protocol import address
from postroad.services import audit_log, context
from postroad.storage import logins, password_links, sessions, sso_identities, store, users


def email_key(email: str) -> str | None:
    """The lookup key of an email: the same for every spelling, None when it is not an address."""
    try:
        return address.parse(email).key
    except address.AddressError:
        return None


async def give_new(
    ctx: context.Context, tx: store.Transaction, user: users.User, *, password_hash: str | None
) -> users.User:
    """Give a user a new login of their own; one that they had stays with its other users, who keep their sessions."""
    now = ctx.clock()
    key = email_key(user.email) or user.email
    made = logins.Login(ctx.new_id(identifiers.LOGIN, now=now), user.email, key, None, now, now)
    await logins.insert(tx, made)
    await give(ctx, tx, user, login_id=made.id)
    await logins.set_password(tx, made.id, password_hash=password_hash, now=now)
    return await users.by_id(tx, user.id) or user


async def give(ctx: context.Context, tx: store.Transaction, user: users.User, *, login_id: str) -> None:
    """Let a user log in with this login, and no longer with the one before. The first one makes them join."""
    await users.set_login(tx, user.id, login_id=login_id, now=ctx.clock())
    if user.login_id is not None:
        await sessions.remove_of_user(tx, user.id)
        await logins.remove_unused(tx, user.login_id)


async def hash_password(ctx: context.Context, password: str, *, email: str, party: str) -> str:
    """The hash of a password for a login with this email.

    All of them have one salt, so that logging in costs one check of a password, however many there are: its time tells
    nobody whether the person belongs to other accounts.
    """
    async with ctx.store.reading() as tx:
        like = await logins.a_hash(tx, email_key(email) or email)
    return await ctx.passwords.hash(password, party=party, like=like)


async def is_shared(tx: store.Transaction, user: users.User) -> bool:
    """Whether the login of a user belongs to other accounts, too, or to somebody whom a provider vouches for."""
    if user.login_id is None:
        return False
    return len(await users.of_login(tx, user.login_id)) > 1 or bool(await sso_identities.of_login(tx, user.login_id))


async def set_password(ctx: context.Context, tx: store.Transaction, user: users.User, *, password_hash: str) -> None:
    """Set the password of a person, in all their accounts, and end all their sessions."""
    login_id = user.login_id or (await give_new(ctx, tx, user, password_hash=password_hash)).login_id or ""
    await logins.set_password(tx, login_id, password_hash=password_hash, now=ctx.clock())
    await after_change(ctx, tx, login_id)


async def after_change(ctx: context.Context, tx: store.Transaction, login_id: str) -> None:
    """What a new password ends in all accounts of a login: sessions and password links. It is audited in each."""
    await sessions.remove_of_login(tx, login_id)
    for one in await users.of_login(tx, login_id):
        await password_links.remove(tx, one.id)
        await audit_log.write(ctx, tx, one.account_id, "user.password_changed", one.email)
