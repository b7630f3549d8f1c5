"""Links for passwords: they work once, for their user, for a limited time, and end all earlier sessions and links."""

import asyncio
import dataclasses

import msgspec
import pytest

from postroad import context, errors
from postroad.model.people import callers, login_rules
from postroad.model.units import times
from postroad.services.accounts import account_registry
from postroad.services.operations import cleanup
from postroad.services.people import logins, password_links
from postroad.services.people import users as account_users
from postroad.storage.people import users
from tests.contexts import PASSWORD, Clock
from tests.services.audit_entries import ADDRESS, as_user, entries
from tests.services.people.test_schemes import bearer, who_is

NEW = "another good one"
HOUR = 3600


@pytest.fixture
async def token(ctx: context.Context, owner: users.User) -> str:
    """A link for the owner, who has a password."""
    return (await account_users.create_password_link(ctx, owner.account_id, owner.id)).token


async def log_in(ctx: context.Context, email: str, password: str) -> logins.LoggedIn:
    return await logins.log_in(ctx, email, password, client_address=ADDRESS)


async def refused(ctx: context.Context, token: str) -> str:
    """The one text that says that a link does not work, whether it is looked at or used."""
    texts = set()
    for attempt in (password_links.find_user(ctx, token), password_links.redeem(ctx, token, password=NEW)):
        with pytest.raises(errors.NotFound) as refusal:
            await attempt
        texts.add(refusal.value.message)
    (text,) = texts
    return text


async def test_a_link_names_its_user_and_gives_them_the_password_they_choose(
    ctx: context.Context, owner: users.User, token: str
) -> None:
    session = await log_in(ctx, owner.email, PASSWORD)
    assert (await password_links.find_user(ctx, token)).id == owner.id
    assert (await password_links.redeem(ctx, token, password=NEW)).joined_at == owner.joined_at
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(session.token))
    with pytest.raises(errors.Unauthorized):
        await log_in(ctx, owner.email, PASSWORD)
    assert (await log_in(ctx, owner.email, NEW)).user.id == owner.id


async def test_a_link_works_once_even_for_two_at_once(ctx: context.Context, owner: users.User, token: str) -> None:
    chosen = ["the first password", "the second password"]
    results = await asyncio.gather(
        *(password_links.redeem(ctx, token, password=password) for password in chosen), return_exceptions=True
    )
    won = [password for password, result in zip(chosen, results, strict=True) if isinstance(result, users.User)]
    assert sorted(type(result).__name__ for result in results) == ["NotFound", "User"]
    assert (await log_in(ctx, owner.email, won[0])).user.id == owner.id
    await refused(ctx, token)


async def test_unknown_used_expired_and_impossible_links_are_refused_alike(
    ctx: context.Context, account_id: str, owner: users.User, token: str, clock: Clock
) -> None:
    texts = {await refused(ctx, other) for other in ("", "x", "0" * 43, "é" * 43, token + "x", "\ud800" * 43)}
    await password_links.redeem(ctx, token, password=NEW)
    texts.add(await refused(ctx, token))
    expiring = await account_users.create_password_link(ctx, account_id, owner.id)
    clock.pass_seconds(24 * HOUR - 1)
    await password_links.find_user(ctx, expiring.token)
    clock.pass_seconds(1)
    texts.add(await refused(ctx, expiring.token))
    assert len(texts) == 1
    assert (await cleanup.sweep(ctx)).password_links == 1
    assert await refused(ctx, expiring.token) in texts


async def test_a_newer_link_a_new_password_and_a_lock_out_end_a_link(
    ctx: context.Context, account_id: str, owner: users.User
) -> None:
    async def new_link() -> password_links.NewLink:
        return await account_users.create_password_link(ctx, account_id, owner.id)

    async def change_password() -> None:
        session = await log_in(ctx, owner.email, PASSWORD)
        who = await who_is(ctx, bearer(session.token))
        await logins.change_password(ctx, who, current_password=PASSWORD, new_password=PASSWORD)

    async def set_password() -> None:
        await account_users.set_password(ctx, account_id, owner.id, password=PASSWORD)

    link = await new_link()
    assert link.token not in repr(link)
    for ending in (new_link, set_password, change_password):
        await ending()
        await refused(ctx, link.token)
        link = await new_link()
        await password_links.find_user(ctx, link.token)
    await account_users.disable(ctx, account_id, owner.id)
    await refused(ctx, link.token)
    async with ctx.store.transaction() as tx:
        made = await password_links.create(ctx, tx, owner)
    await refused(ctx, made.token)  # however it was created
    await account_users.enable(ctx, account_id, owner.id)
    await refused(ctx, link.token)


async def test_neither_a_refused_password_nor_a_closed_account_uses_a_link_up(
    ctx: context.Context, account_id: str, owner: users.User, token: str
) -> None:
    for password in ("", "short", "x" * 257, "nul \0 nul nul"):
        with pytest.raises(errors.InvalidRequest, match="password:"):
            await password_links.redeem(ctx, token, password=password)
    await account_registry.close(ctx, account_id)
    await refused(ctx, token)
    await account_registry.reopen(ctx, account_id)
    assert (await password_links.redeem(ctx, token, password=NEW)).id == owner.id


async def test_an_invitation_lasts_longer_than_a_reset_and_the_audit_log_names_who_used_it(
    ctx: context.Context, account_id: str, owner: users.User, clock: Clock
) -> None:
    acting = as_user(ctx, owner)
    invited = await account_users.invite(acting, account_id, email="jo@example.com", role=callers.Role.DEVELOPER)
    again = await account_users.create_password_link(ctx, account_id, invited.user.id)
    assert invited.expires_at == again.expires_at == clock.now + 72 * HOUR * 1_000_000
    reset = await account_users.create_password_link(ctx, account_id, owner.id)
    assert reset.expires_at == clock.now + 24 * HOUR * 1_000_000
    await password_links.redeem(ctx, again.token, password=NEW)
    actors = {entry.action: (entry.actor_kind, entry.actor) for entry in await entries(ctx, account_id)}
    assert actors["user.invited"] == ("person", owner.email)
    assert actors["user.joined"] == ("person", "jo@example.com")


@pytest.mark.parametrize(
    "base_url, url",
    [
        ("https://mail.example.com", "https://mail.example.com/password/token"),
        ("https://mail.example.com/", "https://mail.example.com/password/token"),
        ("", "http://127.0.0.1:8025/password/token"),
    ],
)
async def test_an_address_is_made_from_the_configuration(ctx: context.Context, base_url: str, url: str) -> None:
    http = msgspec.structs.replace(ctx.settings.http, base_url=base_url, listen="127.0.0.1:8025")
    assert password_links.url(msgspec.structs.replace(ctx.settings, http=http), "token") == url


async def test_whoever_tries_many_links_is_slowed_like_whoever_tries_many_passwords(
    ctx: context.Context, owner: users.User, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = login_rules.FailureLimit(free=10, interval=3 * times.SECOND)
    monkeypatch.setitem(login_rules.IPV4_NETWORKS, 32, limit)
    # An address that no other test uses: limits are looked up once per address.
    guessing = dataclasses.replace(ctx, actor=callers.Actor(callers.ActorKind.PERSON, client_address="198.51.100.77"))
    for number in range(limit.free):
        await password_links.find_user(guessing, token)  # a valid one costs nothing
        with pytest.raises(errors.NotFound):
            await password_links.find_user(guessing, f"{number:043}")
    with pytest.raises(errors.RateLimited) as refusal:
        await password_links.find_user(guessing, token)
    assert refusal.value.retry_after == 3
    elsewhere = dataclasses.replace(ctx, actor=callers.Actor(callers.ActorKind.PERSON, client_address="203.0.113.1"))
    assert (await password_links.redeem(elsewhere, token, password=NEW)).id == owner.id
