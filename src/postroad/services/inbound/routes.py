"""Routes: which addresses receive mail for an account, and what happens to it.

A route is for an address, for an address with any tag or none (`support+*@in.example.com`), or for every address of a
domain. Its domain is a verified sender domain of the account or below one, so two accounts never share one; a domain
that is verified by itself belongs to the account that verified it. The most specific route is used.
"""

from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.domains import domain_records
from postroad.model.units import identifiers, labels
from postroad.protocol.mime import address
from postroad.services import audit_log, usage_limits
from postroad.services.domains import dns_checks
from postroad.storage.engine import store
from postroad.storage.mail import domains, received
from postroad.storage.people import accounts, users

_EVERY: Final = "*"
_TAG: Final = "+"
_ANY_TAG: Final = "+*"


class CheckedRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A route, the MX record that brings its mail here, and what DNS has."""

    route: received.Route
    name: str
    value: str | None
    state: domain_records.RecordState
    detail: str


def match_key(text: str) -> str:
    """What a route matches, as it is stored and compared: in lower case, with A-labels. Raises InvalidRequest."""
    local, _, domain = text.strip().rpartition("@")
    if local == _EVERY:
        return f"*@{labels.parse_domain('match', domain)}"
    name = local.removesuffix(_ANY_TAG)
    is_plain = name == local or not (_TAG in name or "*" in name)
    try:
        mailbox = address.parse(f"{name}@{domain}")
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"match: {problem}") from None
    if mailbox.display_name is not None or not is_plain or "*" in mailbox.local:
        raise errors.InvalidRequest("match: use support@…, support+*@… or *@…")
    if len(mailbox.local) + len(_ANY_TAG) > address.MAX_LOCAL_OCTETS:
        raise errors.InvalidRequest("match: the part before @ is too long")
    plain, _, at_domain = mailbox.key.rpartition("@")
    return f"{plain}{local[len(name) :]}@{at_domain}"


def keys_of(mailbox: address.Mailbox) -> list[str]:
    """The keys of routes that take mail to an address, the most specific first."""
    local, _, domain = mailbox.key.rpartition("@")
    return [mailbox.key, f"{local.partition(_TAG)[0]}{_ANY_TAG}@{domain}", f"{_EVERY}@{domain}"]


async def add(
    ctx: context.Context,
    account_id: str,
    match: str,
    *,
    action: received.Action | str | None = None,
    forward_to: str | None = None,
) -> received.Route:
    """Add a route. Without an action it forwards if there is a `forward_to`, and otherwise stores."""
    key = match_key(match)
    default = received.Action.FORWARD if forward_to else received.Action.STORE
    chosen = received.Action(action) if action is not None else default
    if (chosen is received.Action.FORWARD) != bool(forward_to):
        raise errors.InvalidRequest("forward_to: required with the action forward, and not allowed with others")
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        owner = await _owner(tx, account_id, key.rpartition("@")[2])
        await accounts.lock(tx, [account_id])
        await usage_limits.check_quota(ctx, tx, account_id, "inbound_routes")
        if forward_to and not await is_own(tx, account_id, forward_to):
            raise errors.InvalidRequest(
                "forward_to: use the address of a user of this account, or one at one of its verified domains"
            )
        route = received.Route(
            id=ctx.new_id(identifiers.INBOUND_ROUTE, now=now),
            account_id=account_id,
            domain_id=owner.id,
            match_key=key,
            action=chosen,
            forward_to=forward_to or None,
            created_at=now,
        )
        if not await received.insert_route(tx, route):
            raise errors.Conflict(f"match: a route for {key} already exists")
        await audit_log.write(ctx, tx, account_id, "inbound_route.added", key, forward_to or chosen.value)
    return route


async def remove(ctx: context.Context, account_id: str, route_id: str) -> None:
    """Remove a route. What it has received stays."""
    async with ctx.store.transaction() as tx:
        route = await _existing(tx, account_id, route_id)
        await received.remove_route(tx, account_id, route_id)
        await audit_log.write(ctx, tx, account_id, "inbound_route.removed", route.match_key)


async def find(ctx: context.Context, account_id: str, route_id: str) -> received.Route:
    async with ctx.store.reading() as tx:
        return await _existing(tx, account_id, route_id)


async def of_account(ctx: context.Context, account_id: str, *, after: str = "", limit: int) -> list[received.Route]:
    async with ctx.store.reading() as tx:
        return await received.routes(tx, account_id, after=after, limit=limit)


async def record(ctx: context.Context, route: received.Route) -> domain_records.Record:
    """The MX record that brings its mail here."""
    service = await ctx.dns.service()
    value = f"{domain_records.MX_PREFERENCE} {service.host}" if service.host else None
    name = route.match_key.rpartition("@")[2]
    return domain_records.Record(domain_records.RecordPurpose.RETURN_PATH, name, "MX", value)


async def check(ctx: context.Context, account_id: str, route_id: str) -> CheckedRoute:
    """Ask DNS whether mail to a route arrives here. Raises RateLimited when too many checks are in progress."""
    route = await find(ctx, account_id, route_id)
    wanted = await record(ctx, route)
    with usage_limits.acquire(ctx, dns_checks.CHECKS, account_id):
        finding = await ctx.dns.check(wanted, domain=wanted.name, account_id=account_id)
    detail = "mail arrives here" if finding.state is domain_records.RecordState.OK else finding.detail
    return CheckedRoute(route=route, name=wanted.name, value=wanted.value, state=finding.state, detail=detail)


async def is_own(tx: store.Transaction, account_id: str, email: str) -> bool:
    """Whether mail may be forwarded to an address: it is of a user of the account, or at a domain that it verified.

    So a route cannot be aimed at a stranger.
    """
    try:
        mailbox = address.parse(email)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"forward_to: {problem}") from None
    domain = await domains.by_name(tx, account_id, mailbox.domain)
    if domain is not None and domain.verified_at is not None:
        return True
    found = await users.by_email(tx, mailbox.key)
    return any(user.account_id == account_id and user.joined_at and not user.disabled_at for user in found)


async def _owner(tx: store.Transaction, account_id: str, name: str) -> domains.Domain:
    """The verified domain of the account that a name is, or is below; the nearest one decides who may have it."""
    above = name
    while "." in above:
        owner = await domains.verified_owner(tx, above)
        domain = await domains.by_name(tx, account_id, above) if owner == account_id else None
        if domain is not None:
            return domain
        if owner is not None:
            break
        above = above.partition(".")[2]
    raise errors.Forbidden(f"match: {name} is neither a verified domain of this account nor below one")


async def _existing(tx: store.Transaction, account_id: str, route_id: str) -> received.Route:
    is_id = identifiers.is_identifier(route_id, identifiers.INBOUND_ROUTE)
    route = await received.route(tx, account_id, route_id) if is_id else None
    if route is None:
        raise errors.NotFound("no such inbound route in this account")
    return route
