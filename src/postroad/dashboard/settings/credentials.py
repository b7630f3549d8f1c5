"""`/keys` and `/credentials`: API keys and SMTP credentials. A secret is shown once, in the response to the form."""

import re
import zoneinfo
from typing import Final, Literal

from postroad.dashboard.framework import forms, lists, requests, snippets
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.services.domains import domain_registry
from postroad.services.people import api_keys, credentials
from postroad.web import routing

# What each scope permits, as in docs/api-keys.md.
SCOPES: Final = {
    "send": "Send messages.",
    "read": "Read messages, their status and content.",
    "templates": "Manage templates.",
    "suppressions": "Manage suppressions.",
    "webhooks": "Manage webhooks.",
    "domains": "Manage domains.",
    "statistics": "Read statistics and usage.",
    "team": "Manage users, API keys and SMTP credentials, and read the audit log and requests.",
    "*": "Everything in the account.",
    "operator": "Manage the installation, whichever account it concerns.",
}
# The permission that giving a scope needs, where it is not that of the page.
GIVERS: Final = {
    "team": callers.Permission.MANAGE,
    "*": callers.Permission.MANAGE,
    "operator": callers.Permission.OPERATE,
}
# What most keys are for, and the scope that permits it.
PRESETS: Final = {"sending": "send", "read": "read", "full": "*"}
_BETWEEN: Final = re.compile(r"[\s,]+")


class NewKey(forms.Form, frozen=True, kw_only=True):
    """A key to create; without a credential it belongs to the account's first."""

    name: str
    credential_id: str | None = None
    mode: statuses.Mode | None = None
    access: Literal["sending", "read", "full", "custom"] | None = None
    scopes: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None
    networks: str | None = None
    templates: str | None = None
    recipients_per_day: int | None = None
    credit_budget: int | None = None
    approval_above: int | None = None
    expires_on: str | None = None

    @property
    def chosen_scopes(self) -> frozenset[str]:
        """Those of the preset, or what is ticked. No preset has `operator`: it is ticked beside one."""
        ticked = frozenset(self.scopes or ())
        preset = PRESETS.get(self.access or "sending")
        return ticked if preset is None else frozenset({preset}) | (ticked & {callers.Scope.OPERATOR})

    def limits(self, zone: zoneinfo.ZoneInfo) -> callers.KeyLimits:
        """The limits of the key; it expires at the end of the day, in this zone."""
        return callers.KeyLimits(
            domains=self.domains or (),
            networks=_words(self.networks),
            templates=_words(self.templates),
            recipients_per_day=self.recipients_per_day,
            credit_budget=self.credit_budget,
            approval_above=self.approval_above,
            expires_at=None if self.expires_on is None else forms.end_of_day("expires_on", self.expires_on, zone),
        )


async def show_keys(request: requests.PageRequest) -> routing.Response:
    listed = await lists.page(request, api_keys.of_account, prefix=identifiers.API_KEY)
    known = await credentials.of_account(request.ctx, request.account_id)
    where = await snippets.snippet_context(request)
    return request.page(
        "api_keys.html",
        listed=listed,
        made=None,
        snippet_context=where,
        snippets=snippets.over_http(where),
        domains=await domain_registry.of_account(request.ctx, request.account_id, limit=api_keys.MAX_LIMIT_NAMES),
        presets=PRESETS,
        scopes={scope: text for scope, text in SCOPES.items() if scope not in GIVERS or request.may(GIVERS[scope])},
        usage={key.id: callers.usage_on_day(key.usage, now=request.ctx.clock()) for key in listed.rows if key.usage},
        credentials={credential.id: credential for credential in known},
        live=[credential for credential in known if credential.revoked_at is None],
    )


async def create_key(request: requests.PageRequest) -> routing.Response:
    """Create a key and show it once, with snippets that use it."""
    form: NewKey = request.form
    made, secret = await api_keys.create(
        request.ctx,
        request.account_id,
        credential_id=form.credential_id,
        name=form.name,
        scopes=form.chosen_scopes,
        mode=form.mode or statuses.Mode.LIVE,
        limits=form.limits(request.zone),
    )
    where = await snippets.snippet_context(request, made.limits)
    scopes = callers.scopes_of(made.scopes)
    may_send = callers.Scope.SEND in scopes
    return request.page(
        "api_keys.html",
        status=201,
        made=made,
        made_mode=api_keys.mode_of(made),
        secret=secret,
        may_send=may_send,
        snippet_context=where,
        snippets=snippets.over_http(where, api_key=secret)
        if may_send
        else snippets.of_request(where.base_url, scopes, api_key=secret),
    )


async def revoke_key(request: requests.PageRequest) -> routing.Response:
    await api_keys.revoke(request.ctx, request.account_id, request.path["id"])
    return request.redirect("/keys", notice="API key revoked. Applications that use it can no longer connect.")


def _words(text: str | None) -> tuple[str, ...]:
    """The words of a field, separated by commas, spaces or lines."""
    return tuple(word for word in _BETWEEN.split(text or "") if word)


KEY_ROUTES: Final = (
    requests.get("/keys", show_keys, query=lists.Query),
    requests.post("/keys", create_key, form=NewKey),
    requests.post("/keys/{id}/revoke", revoke_key),
)


class NewCredential(forms.Form, frozen=True, kw_only=True):
    name: str


async def show(request: requests.PageRequest) -> routing.Response:
    where = await snippets.snippet_context(request)
    listed = await lists.page(request, credentials.of_account, prefix=identifiers.CREDENTIAL)
    return request.page(
        "credentials.html", listed=listed, made=None, snippet_context=where, snippets=snippets.over_smtp(where)
    )


async def create(request: requests.PageRequest) -> routing.Response:
    """Create a credential and show its password once, with snippets that use it."""
    form: NewCredential = request.form
    made, password = await credentials.create(request.ctx, request.account_id, form.name)
    where = await snippets.snippet_context(request)
    shown = snippets.over_smtp(where, username=made.username, password=password)
    return request.page(
        "credentials.html", status=201, made=made, password=password, snippet_context=where, snippets=shown
    )


async def revoke(request: requests.PageRequest) -> routing.Response:
    credential = await credentials.find(request.ctx, request.account_id, request.path["id"])
    await credentials.revoke(request.ctx, request.account_id, credential.id)
    return request.redirect("/credentials", notice=f"{credential.name} and its API keys are revoked.")


ROUTES: Final = (
    requests.get("/credentials", show, query=lists.Query),
    requests.post("/credentials", create, form=NewCredential),
    requests.post("/credentials/{id}/revoke", revoke),
)
