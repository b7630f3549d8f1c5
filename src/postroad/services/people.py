"""People of an account: made, listed, given a password, locked out and let in again.

A changed password and a lock-out end every session of that person, in every process, within one second.
"""

from typing import Final

from postroad import errors
from postroad.model import caller, identifiers
from postroad.protocol import address
from postroad.services import context, passwords, secrets
from postroad.storage import access, accounts, users

# 20 characters of 62 are 119 bits.
GENERATED_CHARACTERS: Final = 20


def email_key(email: str) -> str | None:
    """By what a person is found: the same for every way of writing the address, None when it is no address."""
    try:
        return address.parse(email).key
    except address.AddressError:
        return None


async def create(
    ctx: context.Context, account_id: str, *, email: str, password: str | None, role: caller.Role
) -> tuple[users.User, str]:
    """A new person and the password, which is generated when none is given."""
    mailbox = _plain_address(email)
    if password is not None:
        passwords.check_new("password", password)
    chosen = secrets.random_text(GENERATED_CHARACTERS) if password is None else password
    password_hash = await ctx.passwords.hash(chosen)
    now = ctx.clock()
    user = users.User(
        id=ctx.new_id(identifiers.USER, now=now),
        account_id=account_id,
        email=mailbox.address,
        password_hash=password_hash,
        role=role.value,
        tokens_valid_from=now,
        disabled_at=None,
        created_at=now,
    )
    async with ctx.store.transaction() as tx:
        if await accounts.by_id(tx, account_id) is None:
            raise errors.NotFound("there is no such account")
        if not await users.insert(tx, user, email_key=mailbox.key):
            raise errors.Conflict("email: somebody logs in with this address already")
    return user, chosen


async def of_account(ctx: context.Context, account_id: str) -> list[users.User]:
    """The people of an account, in the order of their making."""
    async with ctx.store.scanning() as tx:
        return await users.of_account(tx, account_id)


async def find(ctx: context.Context, account_id: str, user_id: str) -> users.User:
    """One person of an account."""
    async with ctx.store.reading() as tx:
        user = await users.by_id(tx, user_id) if identifiers.is_identifier(user_id, identifiers.USER) else None
    if user is None or user.account_id != account_id:
        raise errors.NotFound("there is no such person in this account")
    return user


async def by_email(ctx: context.Context, email: str) -> users.User | None:
    """Who logs in with this address, in whichever account; for operators."""
    key = email_key(email)
    if key is None:
        return None
    async with ctx.store.reading() as tx:
        return await users.by_email(tx, key)


async def set_password(ctx: context.Context, account_id: str, user_id: str, *, password: str) -> users.User:
    """Give a person a new password without asking for the old one; for operators."""
    passwords.check_new("password", password)
    user = await find(ctx, account_id, user_id)
    password_hash = await ctx.passwords.hash(password)
    async with ctx.store.transaction() as tx:
        await access.bump(tx)
        await users.set_password(tx, user.id, password_hash=password_hash, now=ctx.clock())
    ctx.memory.forget()
    return await find(ctx, account_id, user_id)


async def disable(ctx: context.Context, account_id: str, user_id: str) -> users.User:
    """Lock a person out."""
    return await _set_disabled(ctx, account_id, user_id, disabled_at=ctx.clock())


async def enable(ctx: context.Context, account_id: str, user_id: str) -> users.User:
    """Let a person log in again; sessions from before stay dead."""
    return await _set_disabled(ctx, account_id, user_id, disabled_at=None)


async def _set_disabled(ctx: context.Context, account_id: str, user_id: str, *, disabled_at: int | None) -> users.User:
    user = await find(ctx, account_id, user_id)
    async with ctx.store.transaction() as tx:
        await access.bump(tx)
        await users.set_disabled(tx, user.id, disabled_at=disabled_at, now=ctx.clock())
    ctx.memory.forget()
    return await find(ctx, account_id, user_id)


def _plain_address(email: str) -> address.Mailbox:
    try:
        mailbox = address.parse(email)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"email: {problem}") from None
    if mailbox.display_name is not None or mailbox.written != mailbox.written.strip(" "):
        raise errors.InvalidRequest("email: the address alone, without a name")
    return mailbox
