"""`/v1/domains`: the sender domains of the account."""

from typing import Annotated, Final, Literal, TypeVar

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records
from postroad.model.people import callers
from postroad.model.reports import dmarc_readiness
from postroad.model.units import identifiers, times
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.domains import key_rotation, link_hosts, received_reports
from postroad.storage.mail import domains as stored
from postroad.web import routing

DomainT = TypeVar("DomainT", bound="Domain")
RESOURCE: Final = resource.Resource("Domains", {"id": identifiers.pattern(identifiers.DOMAIN)})


class Dkim(msgspec.Struct, frozen=True):
    """The DNS record with the public key that verifies the domain's signatures (RFC 6376)."""

    selector: str
    name: Annotated[str, msgspec.Meta(description="The record name, without a trailing dot.")]
    type: Annotated[
        Literal["TXT", "CNAME"],
        msgspec.Meta(description="`CNAME` where the operator publishes the keys: add the record once."),
    ]
    value: Annotated[
        str,
        msgspec.Meta(description="The complete text. In zone files, split it into strings of at most 255 characters."),
    ]


class Domain(msgspec.Struct, frozen=True):
    """A sender domain. Its name is in lower case, with A-labels."""

    id: str
    name: str
    verified: bool
    verified_at: times.WireTime | None
    verified_by: Annotated[
        Literal["operator", "dns"] | None,
        msgspec.Meta(
            description="Who verified the domain. `dns`: the DKIM record was found. It is checked again, and the "
            "verification expires when the record stays missing."
        ),
    ]
    failing_since: Annotated[
        times.WireTime | None,
        msgspec.Meta(
            description="Start of a failure of the DNS record. After 72 hours the domain is no longer verified."
        ),
    ]
    warm: Annotated[bool, msgspec.Meta(description="The operator exempted the domain from warm-up.")]
    link_host: Annotated[
        str | None, msgspec.Meta(description="The host of its unsubscribe links, if not the service's.")
    ]
    created_at: times.WireTime
    dkim: Annotated[
        Dkim | None,
        msgspec.Meta(description="Null for a domain that has no key yet; a check of its records creates one."),
    ]


class DnsRecord(msgspec.Struct, frozen=True):
    """A DNS record that the domain should have, and the result of the last check."""

    purpose: domain_records.RecordPurpose
    name: Annotated[str, msgspec.Meta(description="The record name, without a trailing dot.")]
    type: Literal["TXT", "MX", "CNAME"]
    value: Annotated[
        str | None,
        msgspec.Meta(
            description="The expected value. If the domain has an SPF or DMARC record, this is that record with the "
            "missing part added: replace it, because two of a kind are invalid. Null when the service does not know "
            "the value."
        ),
    ]
    required: Annotated[
        bool,
        msgspec.Meta(
            description="Whether mail delivery depends on it; the other records are recommended, and those of Ed25519 "
            "and old keys optional."
        ),
    ]
    managed: Annotated[bool, msgspec.Meta(description="The record is in the operator's DNS: nothing to do.")]
    state: Annotated[
        domain_records.RecordState,
        msgspec.Meta(
            description="`pending`: not checked yet. `unknown`: DNS did not respond; it will be checked again."
        ),
    ]
    detail: Annotated[str, msgspec.Meta(description="What was found, and what to do.")]
    checked_at: times.WireTime | None


class Warmup(msgspec.Struct, frozen=True):
    """Today's warm-up volume and how much of it is used, in recipients (UTC days). A null cap means no limit."""

    used: int
    cap: int | None
    tomorrow: Annotated[int | None, msgspec.Meta(description="Tomorrow's cap, at the current volume.")]
    next_at: Annotated[times.WireTime, msgspec.Meta(description="When the next day begins.")]


class DomainDetails(Domain, frozen=True):
    """A sender domain with its DNS records and warm-up."""

    records: list[DnsRecord]
    warmup: Annotated[Warmup | None, msgspec.Meta(description="Null for a domain that needs no warm-up.")]


class ReportedDay(msgspec.Struct, frozen=True):
    """What DMARC reports say about a UTC day."""

    date: Annotated[str, msgspec.Meta(extra_json_schema={"format": "date"})]
    messages: int
    passed: Annotated[int, msgspec.Meta(description="Messages that passed DMARC.")]


class Reporter(msgspec.Struct, frozen=True):
    """Who sent reports: the authenticated domain of their mail."""

    domain: str
    messages: int
    passed: int


class ReportedSource(msgspec.Struct, frozen=True):
    """A network that sends in the name of the domain."""

    network: str
    is_own: Annotated[bool, msgspec.Meta(description="This installation sends from it.")]
    is_dismissed: Annotated[bool, msgspec.Meta(description="A user of the account marked it as not theirs.")]
    messages: int
    passed: int
    days: Annotated[int, msgspec.Meta(description="On how many days it was seen.")]


class TlsSessions(msgspec.Struct, frozen=True):
    """TLS sessions of a sending service with the mail hosts of the domain (RFC 8460)."""

    reporter: str
    policy: Annotated[str, msgspec.Meta(description="`sts`, `tlsa` or `no-policy-found`.")]
    failure: Annotated[
        str | None, msgspec.Meta(description="A result type of RFC 8460; null for sessions without a failure.")
    ]
    sessions: int


class DomainReports(msgspec.Struct, frozen=True):
    """What receivers reported about a sender domain in the last 30 days."""

    address: Annotated[
        str | None, msgspec.Meta(description="Where to send reports: the `dmarc` record of the domain requests them.")
    ]
    can_reject: Annotated[bool, msgspec.Meta(description="Whether the domain can move to `p=reject`.")]
    obstacles: Annotated[list[dmarc_readiness.Obstacle], msgspec.Meta(description="Why it cannot.")]
    messages: int
    passed: int
    days: list[ReportedDay]
    reporters: list[Reporter]
    sources: Annotated[list[ReportedSource], msgspec.Meta(description="The largest first, 200 at most.")]
    tls: list[TlsSessions]
    unauthenticated_messages: Annotated[
        int, msgspec.Meta(description="Messages in reports that are not authenticated; they count nowhere else.")
    ]
    unreadable_reports: int


class NewDomain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A domain to register."""

    name: resource.DomainName


class DomainUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The host of unsubscribe links: the domain or a name below it, a CNAME of the service. Null removes it."""

    link_host: resource.DomainName | None


class DomainResponse(resource.Response, frozen=True):
    """One domain."""

    domain: DomainDetails


class DomainReportsResponse(resource.Response, frozen=True):
    """The reports about one domain."""

    reports: DomainReports


class DomainsQuery(resource.PageQuery, frozen=True):
    """Pagination of the list."""

    cursor: Annotated[str, resource.cursor_of(identifiers.pattern(identifiers.DOMAIN))] | None = None


class DomainsResponse(resource.Response, frozen=True):
    """Domains, oldest first."""

    domains: list[Domain]
    next_cursor: resource.NextCursor


def _domain(
    kind: type[DomainT], row: stored.Domain, record: domain_keys.DkimRecord | None, /, **more: object
) -> DomainT:
    dkim = None if record is None else resource.from_record(Dkim, record)
    return resource.from_record(kind, row, verified=row.verified_at is not None, warm=bool(row.warm), dkim=dkim, **more)


def record_view(shown: domain_checks.RecordStatus) -> DnsRecord:
    """A record in its public form."""
    record = shown.record
    return resource.from_record(
        DnsRecord, shown, purpose=record.purpose, name=record.name, type=record.type, managed=record.managed
    )


async def details(ctx: context.Context, row: stored.Domain, *, for_operator: bool) -> DomainDetails:
    """A domain with its records. An operator reads what to publish in the zone `domains.key_zone`."""
    known = await domain_keys.existing_records(ctx, [row])
    records = await domain_checks.records(ctx, row)
    if for_operator:
        records = [*map(domain_checks.for_operator, records)]
    warmth = await domains.warmup_view(ctx, row)
    return _domain(
        DomainDetails,
        row,
        known.get(row.id),
        records=[*map(record_view, records)],
        warmup=None if warmth is None else resource.from_record(Warmup, warmth),
    )


async def _response(
    ctx: context.Context, request: routing.Request, row: stored.Domain, *, status: int = 200
) -> routing.Response:
    shown = await details(ctx, row, for_operator=callers.Permission.OPERATE in request.caller.permissions)
    return routing.Response(status, DomainResponse(shown, request_id=request.id))


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List sender domains.

    Oldest first.
    """
    query: DomainsQuery = request.query
    after = identifiers.after(query.cursor, identifiers.DOMAIN)
    found = await domains.of_account(ctx, request.caller.account_id, after=after, limit=query.rows + 1)
    rows, following = identifiers.page(found, limit=query.rows)
    records = await domain_keys.existing_records(ctx, rows)
    listed = [_domain(Domain, row, records.get(row.id)) for row in rows]
    return routing.Response(200, DomainsResponse(listed, following, request_id=request.id))


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Register a sender domain.

    The response has the DNS records to publish.
    """
    body: NewDomain = request.body
    made = await domains.add(ctx, request.caller.account_id, body.name, verified=False)
    await domain_keys.keys(ctx, made)
    return await _response(ctx, request, made, status=201)


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a sender domain.

    With the DNS records to publish, and what the last check found.
    """
    found = await domains.find(ctx, request.caller.account_id, request.path["id"])
    return await _response(ctx, request, found)


async def change(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change the host of unsubscribe links of a sender domain."""
    changed = await link_hosts.change(ctx, request.caller.account_id, request.path["id"], request.body.link_host)
    return await _response(ctx, request, changed)


async def check(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Check the DNS records of a sender domain."""
    checked = await domain_checks.check_now(ctx, request.caller.account_id, request.path["id"])
    return await _response(ctx, request, checked.domain)


async def rotate_key(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a new DKIM key for a sender domain."""
    found = await domains.find(ctx, request.caller.account_id, request.path["id"])
    await key_rotation.rotate(ctx, found)
    return await _response(ctx, request, found)


async def reports(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get what receivers reported about a sender domain.

    The last 30 days of DMARC and TLS reports, and whether the domain can move to `p=reject`.
    """
    found = await domains.find(ctx, request.caller.account_id, request.path["id"])
    summary = await received_reports.summary(ctx, found.account_id, found.name)
    verdict = summary.verdict
    shown = DomainReports(
        address=received_reports.address(ctx, found.name) or None,
        can_reject=verdict.can_reject,
        obstacles=[*verdict.obstacles],
        messages=verdict.messages,
        passed=verdict.passed,
        days=[
            ReportedDay(times.to_wire(day * times.DAY)[:10], each.messages, each.passed)
            for day, each in summary.days.items()
        ],
        reporters=[resource.from_record(Reporter, each) for each in summary.reporters],
        sources=[
            resource.from_record(ReportedSource, source, is_dismissed=source.network in summary.dismissed)
            for source in summary.sources
        ],
        tls=[TlsSessions(row.reporter, row.policy, row.failure or None, row.sessions) for row in summary.tls],
        unauthenticated_messages=summary.unproven,
        unreadable_reports=summary.unreadable,
    )
    return routing.Response(200, DomainReportsResponse(shown, request_id=request.id))


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove a sender domain.

    The domain can no longer be used to send. Mail already accepted is delivered, without a signature.
    """
    await domains.remove(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(204)


ROUTES: Final = (
    RESOURCE.route("GET /v1/domains", index, query=DomainsQuery, responses={200: DomainsResponse}),
    RESOURCE.route(
        "POST /v1/domains",
        create,
        body=NewDomain,
        body_rules={"examples": [{"name": "example.com"}]},
        responses={201: DomainResponse},
        errors=(errors.Conflict,),
    ),
    RESOURCE.route("GET /v1/domains/{id}", show, responses={200: DomainResponse}),
    RESOURCE.route(
        "PATCH /v1/domains/{id}",
        change,
        body=DomainUpdate,
        description="DNS is queried at once: the host must lead here, by a CNAME record or by its addresses. Until it "
        "does, the response is 409 and names the record to publish.",
        body_rules={"examples": [{"link_host": "links.example.com"}]},
        responses={200: DomainResponse},
        errors=(errors.Conflict, errors.RateLimited),
    ),
    RESOURCE.route("DELETE /v1/domains/{id}", remove, responses={204: None}),
    RESOURCE.route(
        "POST /v1/domains/{id}/check",
        check,
        description="Queries DNS immediately. A domain whose DKIM record is found becomes verified. At most one check "
        f"in {domain_checks.MIN_CHECK_INTERVAL_SECONDS} seconds per domain, and {domain_checks.CHECKS.per_account} "
        "at once per account. The service also checks periodically.",
        responses={200: DomainResponse},
        errors=(errors.RateLimited,),
    ),
    RESOURCE.route(
        "POST /v1/domains/{id}/rotate-key",
        rotate_key,
        description="The record of the new key is `dkim_next`. The old key signs until a check finds that record, and "
        "its own record, then `dkim_old`, must stay published for the days that `detail` says. Repeating the request "
        "while the record is awaited changes nothing; during the overlap it is a conflict.",
        responses={200: DomainResponse},
        errors=(errors.Conflict, errors.RateLimited),
    ),
    RESOURCE.route("GET /v1/domains/{id}/reports", reports, responses={200: DomainReportsResponse}),
)
