"""`/domains`: the sender domains of the account, with their DNS records, which the service checks by itself."""

import contextlib
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records
from postroad.model.people import callers
from postroad.services.domains import dns_checks, domain_registry
from postroad.storage.mail import domains as stored
from postroad.web import routing
from postroad_postmark import error_shape, numbers, schemas

_PAGE: Final = 500
_PURPOSE: Final = domain_records.RecordPurpose


class DomainsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A page of the list."""

    count: schemas.Count | None = None
    offset: schemas.Offset | None = None


class NewDomain(schemas.Body, frozen=True):
    """A domain to register. Return paths of a domain are in the domain that its records name."""

    name: str
    return_path_domain: str | None = None


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List domains, oldest first."""
    query: DomainsQuery = request.query
    found = await _all(ctx, request.caller.account_id)
    offset = query.offset or 0
    listed = found[offset : offset + (query.count or 100)]
    return extension_api.respond(
        {"TotalCount": len(found), "Domains": [await _domain(ctx, domain) for domain in listed]}
    )


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """One domain with its records."""
    return extension_api.respond(await _domain(ctx, await _find(ctx, request)))


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Register a domain."""
    body: NewDomain = request.body
    if body.return_path_domain:
        raise errors.InvalidRequest("ReturnPathDomain: cannot be chosen; leave it out and publish the record returned")
    made = await domain_registry.add(ctx, request.caller.account_id, body.name, verified=False)
    await domain_keys.keys(ctx, made)
    return extension_api.respond(await _domain(ctx, made))


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove a domain."""
    found = await _find(ctx, request)
    await domain_registry.remove(ctx, request.caller.account_id, found.id)
    return extension_api.respond(error_shape.Error(0, f"Domain {found.name} removed."))


async def verify(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Check the DNS records of a domain now, all at once; a check of a moment ago is the result of this one too."""
    found = await _find(ctx, request)
    with contextlib.suppress(errors.RateLimited):
        found = (await dns_checks.check_now(ctx, request.caller.account_id, found.id)).domain
    return extension_api.respond(await _domain(ctx, found))


async def _all(ctx: context.Context, account_id: str) -> list[stored.Domain]:
    found: list[stored.Domain] = []
    while page := await domain_registry.of_account(ctx, account_id, after=found[-1].id if found else "", limit=_PAGE):
        found += page
    return found


async def _find(ctx: context.Context, request: routing.Request) -> stored.Domain:
    numbered = numbers.by_number(await _all(ctx, request.caller.account_id), lambda domain: domain.id)
    found = numbered.get(request.path["id"])
    if found is None:
        raise error_shape.DomainNotFound("no such domain in this account")
    return found


async def _domain(ctx: context.Context, row: stored.Domain) -> dict[str, Any]:
    records = {record.record.purpose: record for record in await dns_checks.records(ctx, row)}
    dkim, path, spf = (records.get(purpose) for purpose in (_PURPOSE.DKIM, _PURPOSE.RETURN_PATH, _PURPOSE.SPF))
    return {
        "ID": numbers.of(row.id),
        "Name": row.name,
        "SPFVerified": _is_ok(spf),
        "SPFHost": spf.record.name if spf else "",
        "SPFTextValue": (spf.value or "") if spf else "",
        "DKIMVerified": row.verified_at is not None,
        "WeakDKIM": False,
        "ReturnPathDomainVerified": _is_ok(path),
        "DKIMHost": dkim.record.name if dkim else "",
        "DKIMTextValue": (dkim.value or "") if dkim else "",
        "DKIMPendingHost": "",
        "DKIMPendingTextValue": "",
        "DKIMRevokedHost": "",
        "DKIMRevokedTextValue": "",
        "SafeToRemoveRevokedKeyFromDNS": False,
        "DKIMUpdateStatus": "Verified" if row.verified_at is not None else "Pending",
        "ReturnPathDomain": path.record.name if path else "",
        "ReturnPathDomainCNAMEValue": (path.value or "") if path else "",
    }


def _is_ok(status: dns_checks.RecordStatus | None) -> bool:
    return status is not None and status.state is domain_records.RecordState.OK


_SCOPE: Final = callers.Scope.DOMAINS
ROUTES: Final = (
    extension_api.route("GET /domains", index, query=DomainsQuery, scope=_SCOPE),
    extension_api.route("POST /domains", create, body=NewDomain, scope=_SCOPE),
    extension_api.route("GET /domains/{id}", show, scope=_SCOPE),
    extension_api.route("DELETE /domains/{id}", remove, scope=_SCOPE),
    # As the documentation and the packages write them.
    extension_api.route("PUT /domains/{id}/verifyDkim", verify, scope=_SCOPE),
    extension_api.route("PUT /domains/{id}/verifydkim", verify, scope=_SCOPE),
    extension_api.route("PUT /domains/{id}/verifyDKIM", verify, scope=_SCOPE),
    extension_api.route("PUT /domains/{id}/verifyReturnPath", verify, scope=_SCOPE),
    extension_api.route("PUT /domains/{id}/verifyreturnpath", verify, scope=_SCOPE),
    extension_api.route("POST /domains/{id}/verifyspf", verify, scope=_SCOPE),
    extension_api.route("POST /domains/{id}/verifySPF", verify, scope=_SCOPE),
)
