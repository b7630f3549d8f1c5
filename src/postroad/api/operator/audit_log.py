"""`/v1/operator/audit-log`: who did what, in all accounts and in the installation."""

from typing import Annotated, Final, Literal

import msgspec

from postroad import context
from postroad.api.v1 import audit_log as of_account
from postroad.api.v1 import resource
from postroad.model.units import identifiers
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.web import routing

RESOURCE: Final = resource.Resource("Audit log")
AccountId = Annotated[str, resource.id_of(identifiers.ACCOUNT, "Only entries of this account.")]


class OperatorAuditLogEntry(of_account.AuditLogEntry, frozen=True, kw_only=True):
    """An action in an account, or in the installation."""

    account_id: Annotated[str | None, msgspec.Meta(description="The account; null for changes of the installation.")]


class OperatorAuditLogQuery(of_account.AuditLogQuery, frozen=True):
    """Filters and pagination of the audit log. Without regard to case."""

    account_id: AccountId | None = None
    of: (
        Annotated[
            Literal["all", "installation"],
            msgspec.Meta(description="`installation` leaves out the entries of accounts."),
        ]
        | None
    ) = None


class OperatorAuditLog(resource.Response, frozen=True):
    """Audit log entries, newest first."""

    entries: list[OperatorAuditLogEntry]
    next_before: resource.NextBefore


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List audit log entries of all accounts and of the installation.

    Newest first. A page of a filtered list may have fewer entries than asked for, or none, before its end: continue
    until `next_before` is null.
    """
    query: OperatorAuditLogQuery = request.query
    account_id = None
    if query.account_id is not None:
        account_id = (await account_registry.find(ctx, query.account_id)).id
    elif query.of == "installation":
        account_id = audit_log.INSTALLATION
    filters = of_account.filters_of(query)
    found = await audit_log.search(ctx, account_id, filters, before=query.before, limit=query.rows)
    entries = [of_account.shown(OperatorAuditLogEntry, row, account_id=row.account_id or None) for row in found.rows]
    return routing.Response(200, OperatorAuditLog(entries, found.next_cursor, request_id=request.id))


ROUTES: Final = (
    resource.operator_route(
        RESOURCE,
        "GET /v1/operator/audit-log",
        index,
        query=OperatorAuditLogQuery,
        responses={200: OperatorAuditLog},
    ),
)
