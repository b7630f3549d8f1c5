"""A provider, an account with a verified domain and a connection to it, and a whole login without a browser."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from postroad import context
from postroad.services.domains import domain_registry
from postroad.services.people import logins as auth_login
from postroad.services.people import sso_connections, sso_flow
from postroad.storage.people import users
from tests import oidc_provider

DOMAIN = "corp.example"


@dataclasses.dataclass(frozen=True, slots=True)
class Sso:
    """An account, or the installation, whose people come by a provider."""

    ctx: context.Context
    account_id: str
    provider: oidc_provider.Provider

    @property
    def visitor(self) -> context.Context:
        """Somebody who has not proved yet who they are."""
        return auth_login.acting(self.ctx, client_address="192.0.2.7")

    def of(self, account_id: str) -> "Sso":
        """The same provider for another account."""
        return dataclasses.replace(self, account_id=account_id)

    def of_installation(self, **more: Any) -> "Sso":
        """The same provider for the whole installation."""
        values = {"issuer": self.provider.issuer, "client_id": oidc_provider.CLIENT_ID}
        return Sso(
            changed(self.ctx, **values, client_secret=oidc_provider.SECRET, **more),
            sso_flow.INSTALLATION,
            self.provider,
        )

    def draft(self, **more: Any) -> sso_connections.Draft:
        values: dict[str, Any] = {
            "issuer": self.provider.issuer,
            "client_id": oidc_provider.CLIENT_ID,
            "client_secret": oidc_provider.SECRET,
            "domains": [DOMAIN],
            "groups": {},
            "creates_users": True,
        }
        return sso_connections.Draft(**{**values, **more})

    async def save(self, **more: Any) -> sso_connections.Connection:
        """Connect the account with the provider."""
        return await sso_connections.save(self.ctx, self.account_id, self.draft(**more))

    async def connect(self, **more: Any) -> sso_connections.Connection:
        """Verify the domain and connect the account with the provider."""
        for name in more.get("domains", [DOMAIN]):
            if name not in {one.name for one in await domain_registry.of_account(self.ctx, self.account_id)}:
                await domain_registry.add(self.ctx, self.account_id, name, verified=True)
        return await self.save(**more)

    async def begin(self) -> sso_flow.Begun:
        return await sso_flow.begin(self.visitor, self.account_id, next_path="/")

    async def complete(self, **answer: str | None) -> sso_flow.Completed:
        """Begin and complete an attempt; `answer` replaces what the browser brings back."""
        begun = await self.begin()
        given: Mapping[str, str | None] = {**self.provider.authorize(begun.url), **answer}
        told = {name: value for name, value in given.items() if value is not None}
        return await self.finish(begun.cookie, told)

    async def finish(self, cookie: str | None, answer: Mapping[str, str]) -> sso_flow.Completed:
        """Complete an attempt with what a browser brings back."""
        return await sso_flow.complete(self.visitor, self.account_id, cookie=cookie, answer=answer)

    async def enter(self) -> users.Login:
        """The login that a person gets by single sign-on."""
        return await sso_flow.enter(self.visitor, await self.complete())

    async def log_in(self) -> auth_login.LoggedIn:
        """A whole login."""
        login = await self.enter()
        return await auth_login.finish(self.visitor, login, methods="sso", account_id=self.account_id or None)

    async def accounts_of(self, login: users.Login) -> list[str]:
        """The accounts of the users of a login."""
        async with self.ctx.store.reading() as tx:
            return sorted(user.account_id for user in await users.of_login(tx, login.id))


def changed(ctx: context.Context, **more: Any) -> context.Context:
    """The same installation with other settings of single sign-on."""
    sso = msgspec.structs.replace(ctx.settings.sso, **more)
    return dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, sso=sso))
