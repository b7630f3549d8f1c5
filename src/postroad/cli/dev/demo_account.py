"""The demo data of `postroad dev`: an account that can send, and its credentials.

Existing data is reused, so a second start has the same credentials. Credentials that no longer work (`dev.json` or the
database was deleted, a key was revoked or may not read) are replaced and the old ones revoked: deleting `dev.json`
rotates them all.
"""

import base64
import contextlib
from typing import Final

from postroad import context, errors
from postroad.cli.framework import data_folder
from postroad.keys import installation_keys
from postroad.mail.signing import domain_keys
from postroad.model.people import callers
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits as services_credits
from postroad.services.domains import domain_registry as domains
from postroad.services.inbound import routes
from postroad.services.messages import dev_inbox
from postroad.services.people import api_keys, authentication, credentials, users
from postroad.services.people import logins as auth_login
from postroad.services.templates import starters, templates
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users as logins

ACCOUNT_NAME: Final = "Demo"
CREDITS: Final = 10_000
# Below this, the account is topped up at the next start.
MIN_CREDITS: Final = 1_000
EMAIL: Final = "demo@example.com"
DOMAIN: Final = "example.com"
TEMPLATE: Final = "welcome"
# A subdomain, as it would be where the domain has mailboxes elsewhere.
ROUTE: Final = f"*@in.{DOMAIN}"
# The starter of this name says who sends it; what is left to the caller is the name of the recipient.
TEMPLATE_VALUES: Final = {"company": "Corner Shop", "start_url": "https://example.com/start"}
CREDENTIAL_NAME: Final = "postroad dev"
CLIENT_ADDRESS: Final = "127.0.0.1"
# The examples of the client libraries send a message and read its status.
SCOPES: Final = frozenset({callers.Permission.SEND, callers.Permission.READ})


async def prepare(
    ctx: context.Context, before: data_folder.DevInfo | None, *, base_url: str = ""
) -> data_folder.DevInfo:
    """Create what is missing. The addresses of SMTP and the simulator are filled in once they listen."""
    account = await account_of(ctx)
    if services_credits.needs_credits(ctx, account) and account.available < MIN_CREDITS:
        await services_credits.add(ctx, account.id, CREDITS - account.available, "postroad dev")
    await _register_domain(ctx, account.id)
    await _store_template(ctx, account.id)
    await _add_route(ctx, account.id)
    smtp, credential_id = await _smtp(ctx, account.id, before.smtp if before else None)
    login = await _login(ctx, account.id, before.login if before else None)
    await users.add_operator(ctx, login.email)
    if before:
        await _move_webhooks(ctx, account.id, before.base_url, base_url)
    return data_folder.DevInfo(
        base_url=base_url,
        smtp=smtp,
        api_key=await _api_key(ctx, account.id, credential_id, before.api_key if before else None),
        login=login,
        domain=DOMAIN,
        template=TEMPLATE,
    )


async def account_of(ctx: context.Context) -> stored_accounts.Account:
    """The account of the demo login, which may have been renamed; or a new one."""
    person = await users.by_email(ctx, EMAIL)
    return await accounts.find(ctx, person.account_id) if person else await accounts.create(ctx, ACCOUNT_NAME)


async def _register_domain(ctx: context.Context, account_id: str) -> None:
    try:
        await domains.by_name(ctx, account_id, DOMAIN)
    except errors.NotFound:
        await domain_keys.keys(ctx, await domains.add(ctx, account_id, DOMAIN, verified=True))


async def _add_route(ctx: context.Context, account_id: str) -> None:
    # It may be there, or be that of an account that has the domain meanwhile.
    with contextlib.suppress(errors.Conflict, errors.Forbidden):
        await routes.add(ctx, account_id, ROUTE)


async def _store_template(ctx: context.Context, account_id: str) -> None:
    try:
        await templates.find(ctx, account_id, TEMPLATE)
    except errors.NotFound:
        starter = starters.content(starters.find(TEMPLATE))
        content = templates.Content(
            "Welcome, {{name}}", _filled(starter.text), _filled(starter.html), sample='{"name": "Ada"}'
        )
        await templates.save(ctx, account_id, TEMPLATE, content)


def _filled(text: str | None) -> str:
    for name, value in TEMPLATE_VALUES.items():
        text = (text or "").replace(f"{{{{{name}}}}}", value)
    return text or ""


async def _move_webhooks(ctx: context.Context, account_id: str, before: str, now: str) -> None:
    """Webhooks to the built-in endpoint of the previous start go to that of this one, which may have another port."""
    for webhook in await endpoints.of_account(ctx, account_id):
        if before != now and webhook.url == f"{before}{dev_inbox.WEBHOOK_PATH}":
            changes = endpoint_settings.Changes(url=f"{now}{dev_inbox.WEBHOOK_PATH}")
            await endpoints.change(ctx, account_id, webhook.id, changes)


async def _smtp(ctx: context.Context, account_id: str, before: data_folder.Smtp | None) -> tuple[data_folder.Smtp, str]:
    if before:
        pair = base64.b64encode(f"{before.username}:{before.password}".encode()).decode()
        known = await _caller(ctx, account_id, f"Basic {pair}")
        if known and known.credential_id:
            return before, known.credential_id
    for old in await credentials.of_account(ctx, account_id):
        if old.name == CREDENTIAL_NAME and old.revoked_at is None:
            await credentials.revoke(ctx, account_id, old.id)
    credential, password = await credentials.create(ctx, account_id, CREDENTIAL_NAME)
    return data_folder.Smtp(username=credential.username, password=password), credential.id


async def _api_key(ctx: context.Context, account_id: str, credential_id: str, before: str | None) -> str:
    known = await _caller(ctx, account_id, f"Bearer {before}") if before else None
    if before and known and known.permissions >= SCOPES:
        return before
    for old in await api_keys.of_account(ctx, account_id):
        if old.name == CREDENTIAL_NAME and old.revoked_at is None:
            await api_keys.revoke(ctx, account_id, old.id)
    _, secret = await api_keys.create(ctx, account_id, credential_id=credential_id, name=CREDENTIAL_NAME, scopes=SCOPES)
    return secret


async def _login(ctx: context.Context, account_id: str, before: data_folder.Login | None) -> data_folder.Login:
    person = await users.by_email(ctx, EMAIL)
    if person is None:
        person, password = await users.create(ctx, account_id, email=EMAIL, password=None, role=callers.Role.OWNER)
        return data_folder.Login(person.email, password)
    if before and await _can_log_in(ctx, person, before):
        return before
    password = installation_keys.random_text(users.GENERATED_CHARACTERS)
    operator = context.as_operator(ctx)  # whoever starts the service has the installation
    await users.enable(operator, account_id, person.id)
    await users.set_password(operator, account_id, person.id, password=password)
    return data_folder.Login(person.email, password)


async def _can_log_in(ctx: context.Context, person: logins.User, login: data_folder.Login) -> bool:
    """Whether a login still works. Nobody logs in here, so the audit log gets no entry."""
    if login.email != person.email or person.disabled_at is not None:
        return False
    async with ctx.store.reading() as tx:
        known = await logins.login_by_id(tx, person.login_id or "")
    if known is None:
        return False
    try:
        return await auth_login.check_own_password(
            auth_login.acting(ctx, client_address=CLIENT_ADDRESS), known, login.password
        )
    except errors.PostroadError:
        return False


async def _caller(ctx: context.Context, account_id: str, authorization: str) -> callers.Caller | None:
    """The caller with this credential, if it still works and belongs to the account."""
    try:
        known = await authentication.authenticate(ctx, authorization, client_address=CLIENT_ADDRESS)
    except (errors.Unauthorized, errors.RateLimited):
        return None
    return known if known.account_id == account_id else None
