"""Resend's domains: create, list, get, update, verify and remove.

There are no regions here, so a region is accepted and has no effect; what a domain can do besides sending (tracking,
receiving, a return path of one's own choice) is refused by name.
"""

from typing import Any, Final

import msgspec

from postroad import context
from postroad.api import extension_api
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services.domains import dns_checks, domain_registry
from postroad.storage.mail import domains as stored
from postroad.web import routing
from postroad_resend import emails, payload

REGION: Final = "self-hosted"
# Of the only MX record of its name, so any number does.
MX_PRIORITY: Final = 10
Purpose = domain_records.RecordPurpose
State = domain_records.RecordState
_RECORDS: Final = {Purpose.SPF: "SPF", Purpose.RETURN_PATH: "SPF"}
_STATES: Final = {
    State.PENDING: "not_started",
    State.OK: "verified",
    State.MISSING: "pending",
    State.WRONG: "failed",
    State.UNKNOWN: "temporary_failure",
}
# What each option may say without asking for something that we do not have.
_WITHOUT_EFFECT: Final[dict[str, tuple[object, ...]]] = {
    "custom_return_path": (),
    "open_tracking": (False,),
    "click_tracking": (False,),
    "tls": ("opportunistic",),
    "tracking_subdomain": (),
}


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What can be said of a domain besides its name."""

    region: str | None = None
    custom_return_path: Any = None
    open_tracking: Any = None
    click_tracking: Any = None
    tls: Any = None
    tracking_subdomain: Any = None
    capabilities: dict[str, str] | None = None


class NewDomain(Options, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A domain to create."""

    name: str


class DomainUpdate(Options, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to change of a domain. The package for Python repeats the id of the path."""

    id: str | None = None


def _refuse_unsupported(body: Options) -> None:
    for name, allowed in _WITHOUT_EFFECT.items():
        value = getattr(body, name)
        if value is not None and value not in allowed:
            raise payload.unsupported(name)
    for name, value in (body.capabilities or {}).items():
        if (name, value) not in (("sending", "enabled"), ("receiving", "disabled")):
            raise payload.unsupported(f"capabilities.{name}")


def _record(shown: dns_checks.RecordStatus) -> dict[str, Any]:
    record = shown.record
    found = {
        "record": _RECORDS.get(record.purpose, "DKIM"),
        "name": record.name,
        "type": record.type,
        "ttl": "Auto",
        "status": _STATES[shown.state],
        "value": shown.value,
    }
    return found | {"priority": MX_PRIORITY} if record.type == "MX" else found


def _domain(row: stored.Domain, status: str) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "status": status,
        "created_at": times.to_wire(row.created_at),
        "region": REGION,
        "capabilities": {"sending": "enabled", "receiving": "disabled"},
    }


async def _details(ctx: context.Context, row: stored.Domain) -> dict[str, Any]:
    """A domain with its records, except that of DMARC, which Resend leaves out too and its packages do not know."""
    found = [record for record in await dns_checks.records(ctx, row) if record.value is not None]
    found = [record for record in found if record.record.purpose is not Purpose.DMARC]
    is_checked = any(record.checked_at is not None for record in found)
    status = _status(row, is_checked=is_checked)
    return {"object": "domain", **_domain(row, status), "records": [_record(record) for record in found]}


def _status(row: stored.Domain, *, is_checked: bool) -> str:
    if row.verified_at is not None:
        return "verified"
    return "pending" if is_checked else "not_started"


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Register a domain."""
    body: NewDomain = request.body
    _refuse_unsupported(body)
    made = await domain_registry.add(ctx, request.caller.account_id, body.name, verified=False)
    await domain_keys.keys(ctx, made)
    return extension_api.respond(await _details(ctx, made), status=201)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List domains, without their records."""
    query: emails.Page = request.query
    after = identifiers.after(query.after, identifiers.DOMAIN)
    found = await domain_registry.of_account(ctx, request.caller.account_id, after=after, limit=query.rows + 1)
    rows, following = identifiers.page(found, limit=query.rows)
    listed = [_domain(row, _status(row, is_checked=False)) for row in rows]
    return extension_api.respond({"object": "list", "has_more": following is not None, "data": listed})


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a domain with its records."""
    return extension_api.respond(await _details(ctx, await _find(ctx, request)))


async def update(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept options that have no effect; refuse all others."""
    _refuse_unsupported(request.body)
    row = await _find(ctx, request)
    return extension_api.respond({"object": "domain", "id": row.id})


async def verify(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Check the records of a domain now."""
    checked = await dns_checks.check_now(ctx, request.caller.account_id, request.path["id"])
    return extension_api.respond({"object": "domain", "id": checked.domain.id})


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove a domain."""
    await domain_registry.remove(ctx, request.caller.account_id, request.path["id"])
    return extension_api.respond({"object": "domain", "id": request.path["id"], "deleted": True})


async def _find(ctx: context.Context, request: routing.Request) -> stored.Domain:
    return await domain_registry.find(ctx, request.caller.account_id, request.path["id"])


def _route(endpoint: str, handler: routing.Handler[context.Context], **options: Any) -> extension_api.Route:
    return extension_api.route(endpoint, handler, scope=callers.Scope.DOMAINS, **options)


ROUTES: Final = (
    _route("POST /domains", create, body=NewDomain),
    _route("GET /domains", index, query=emails.Page),
    _route("GET /domains/{id}", show),
    _route("PATCH /domains/{id}", update, body=DomainUpdate),
    _route("POST /domains/{id}/verify", verify),
    _route("DELETE /domains/{id}", remove),
)
