"""A provider, an account with a verified domain and a connection to it, and a whole login without a browser."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from postroad import context
from postroad.model.people import callers
from postroad.services.domains import domain_registry
from postroad.services.people import logins as auth_login
from postroad.services.people import sso_connections, sso_flow
from postroad.storage.people import users
from tests import oidc_provider

DOMAIN = "corp.example"


def draft(provider: oidc_provider.Provider, **more: Any) -> sso_connections.Draft:
    values: dict[str, Any] = {
        "issuer": provider.issuer,
        "client_id": oidc_provider.CLIENT_ID,
        "client_secret": oidc_provider.SECRET,
        "domains": [DOMAIN],
        "groups": {},
        "creates_users": True,
    }
    return sso_connections.Draft(**{**values, **more})


async def connect(
    ctx: context.Context,
    account_id: str,
    provider: oidc_provider.Provider,
    **more: Any,
) -> sso_connections.Connection:
    """Verify the domain and connect the account with the provider."""
    for name in more.get("domains", [DOMAIN]):
        if name not in {one.name for one in await domain_registry.of_account(ctx, account_id)}:
            await domain_registry.add(ctx, account_id, name, verified=True)
    return await sso_connections.save(ctx, account_id, draft(provider, **more))


def visitor(ctx: context.Context) -> context.Context:
    """Somebody who has not proved yet who they are."""
    return auth_login.acting(ctx, client_address="192.0.2.7")


async def complete(
    ctx: context.Context, account_id: str, provider: oidc_provider.Provider, **answer: str | None
) -> sso_flow.Completed:
    """Begin and complete an attempt; `answer` replaces what the browser brings back."""
    begun = await sso_flow.begin(visitor(ctx), account_id, next_path="/")
    given: Mapping[str, str | None] = {**provider.authorize(begun.url), **answer}
    told = {name: value for name, value in given.items() if value is not None}
    return await sso_flow.complete(visitor(ctx), account_id, cookie=begun.cookie, answer=told)


async def enter(ctx: context.Context, account_id: str, provider: oidc_provider.Provider) -> users.Login:
    """The login that a person gets by single sign-on."""
    return await sso_flow.enter(visitor(ctx), await complete(ctx, account_id, provider))


async def users_of(ctx: context.Context, login: users.Login) -> list[users.User]:
    """The users of a login."""
    async with ctx.store.reading() as tx:
        return await users.of_login(tx, login.id)


async def log_in(ctx: context.Context, account_id: str, provider: oidc_provider.Provider) -> auth_login.LoggedIn:
    """A whole login."""
    login = await enter(ctx, account_id, provider)
    return await auth_login.finish(visitor(ctx), login, methods="sso", account_id=account_id or None)


def role(user: users.User) -> callers.Role:
    """The role as a value."""
    return callers.Role(user.role)


def changed(ctx: context.Context, **more: Any) -> context.Context:
    """The same installation with other settings of single sign-on."""
    sso = msgspec.structs.replace(ctx.settings.sso, **more)
    return dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, sso=sso))
