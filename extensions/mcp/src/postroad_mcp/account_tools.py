"""Tools about the account: its sender domains, statistics and suppression list."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from postroad.model.domains import domain_records
from postroad_mcp import api_calls, tool, untrusted_text

# A list page, and as many pages as an account with a thousand domains has.
PAGE_ROWS: Final = 100
MAX_PAGES: Final = 10
_HELPFUL: Final = {
    domain_records.RecordState.MISSING: "add the record",
    domain_records.RecordState.WRONG: "change the record to this value",
    domain_records.RecordState.PENDING: "not checked yet: call again with check_now",
    domain_records.RecordState.UNKNOWN: "DNS did not answer: call again later with check_now",
}


class DomainInput(tool.Input, frozen=True, kw_only=True):
    """Which sender domain."""

    domain: Annotated[str, msgspec.Meta(description="The name of the domain: `example.com`.", max_length=253)]
    check_now: Annotated[bool, msgspec.Meta(description="Query DNS now instead of showing the last check.")] = False


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A DNS record that is missing or wrong, or was not checked."""

    purpose: str
    name: str
    type: str
    state: str
    required: Annotated[bool, msgspec.Meta(description="Whether delivery depends on it.")]
    value: Annotated[str | None, msgspec.Meta(description="What the record should be.")]
    what_to_do: str
    found: untrusted_text.UntrustedText


class DomainDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a sender domain: DKIM, SPF, return path and DMARC."""

    domain: str
    verified: bool
    can_send: str
    correct_records: list[str]
    problems: list[Problem]
    last_checked_at: str | None
    note: str = ""


class StatisticsInput(tool.Input, frozen=True, kw_only=True):
    """Which period."""

    period: Annotated[str, msgspec.Meta(description="24h, 7d, 30d or 90d", max_length=8)] = "24h"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One of the latest failures."""

    message_id: str
    email: str
    at: str
    cause: str | None
    reason: str
    meaning: str
    reply: untrusted_text.UntrustedText


class StatisticsResult(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the period and of the one before, by provider, and the latest failures."""

    period: str
    totals: dict[str, int]
    before: dict[str, int]
    providers: list[dict[str, int | str]]
    queued: int
    failures: list[Failure]


class SuppressionInput(tool.Input, frozen=True, kw_only=True):
    """Which address."""

    email: Annotated[str, msgspec.Meta(max_length=320)]


class SuppressionResult(msgspec.Struct, frozen=True, kw_only=True):
    """Whether mail to the address is suppressed, and why."""

    email: str
    suppressed: bool
    source: str | None
    since: str | None
    reason: untrusted_text.UntrustedText | None


async def diagnose_domain(api: api_calls.Api, given: DomainInput) -> DomainDiagnosis:
    """What is missing in the DNS of a domain."""
    listed = await _find_domain(api, given.domain.strip().rstrip(".").lower())
    path, note = f"/v1/domains/{listed['id']}", ""
    domain = (await api_calls.call(api, "GET", path))["domain"]
    if given.check_now:
        checked = await api_calls.ask(api, "POST", f"{path}/check")
        if "domain" in checked.body:
            domain = checked.body["domain"]
        else:
            note = f"DNS was not queried now: {api_calls.refusal(checked)}"
    records = domain["records"]
    times = [record["checked_at"] for record in records if record["checked_at"]]
    return DomainDiagnosis(
        domain=domain["name"],
        verified=domain["verified"],
        can_send="yes" if domain["verified"] else "no: the DKIM record has to be found first",
        correct_records=[record["purpose"] for record in records if record["state"] == domain_records.RecordState.OK],
        problems=[_problem(record) for record in records if record["state"] != domain_records.RecordState.OK],
        last_checked_at=max(times, default=None),
        note=note,
    )


async def _find_domain(api: api_calls.Api, name: str) -> Mapping[str, Any]:
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await api_calls.call(api, "GET", "/v1/domains", query={"limit": PAGE_ROWS, "cursor": cursor})
        for domain in page["domains"]:
            if domain["name"] == name:
                found: Mapping[str, Any] = domain
                return found
        cursor = page["next_cursor"]
        if cursor is None:
            break
    raise api_calls.ToolError(
        "not_found (404): this account has no such sender domain; add it in the dashboard, or with POST /v1/domains"
    )


def _problem(record: Mapping[str, Any]) -> Problem:
    helpful = _HELPFUL[domain_records.RecordState(record["state"])]
    if record["managed"]:
        helpful = "nothing: the operator of this service publishes this record"
    elif record["value"] is None:  # however often DNS is queried, nothing says what the record should be
        helpful = "tell the operator of this service, whose settings do not say what the record should be"
    return Problem(
        purpose=record["purpose"],
        name=record["name"],
        type=record["type"],
        state=record["state"],
        required=record["required"],
        value=record["value"],
        what_to_do=helpful,
        found=untrusted_text.mark(record["detail"]),
    )


async def show_statistics(api: api_calls.Api, given: StatisticsInput) -> StatisticsResult:
    """The counts of the account."""
    found = (await api_calls.call(api, "GET", "/v1/statistics", query={"period": given.period}))["statistics"]
    failures = [
        Failure(
            message_id=failure["message_id"],
            email=untrusted_text.escape(failure["email"]),
            at=failure["at"],
            cause=failure["fault"],
            reason=failure["reason"],
            meaning=failure["explanation"],
            reply=untrusted_text.mark(failure["smtp_response"]),
        )
        for failure in found["failures"]
    ]
    members = ("period", "totals", "before", "providers", "queued")
    return StatisticsResult(**{name: found[name] for name in members}, failures=failures)


async def look_up_suppression(api: api_calls.Api, given: SuppressionInput) -> SuppressionResult:
    """Whether an address is on the suppression list."""
    found = await api_calls.call(api, "GET", "/v1/suppressions", query={"email": given.email})
    row = next(iter(found["suppressions"]), None)
    return SuppressionResult(
        email=untrusted_text.escape(given.email),
        suppressed=row is not None,
        source=row["source"] if row else None,
        since=row["created_at"] if row else None,
        reason=untrusted_text.mark_optional(row["reason"]) if row else None,
    )


TOOLS: Final = (
    tool.Tool(
        name="diagnose_domain",
        title="Diagnose a sender domain",
        description="Show whether a sender domain can send, which of its DNS records (DKIM, SPF, return path, DMARC) "
        "are correct, which are missing or wrong, and what they should be. Needs an API key with the scope domains.",
        arguments=DomainInput,
        result=DomainDiagnosis,
        run=diagnose_domain,
        # A check that finds the DKIM record verifies the domain.
        is_read_only=False,
    ),
    tool.Tool(
        name="get_statistics",
        title="Get delivery statistics",
        description="Get the counts of accepted, delivered, bounced, failed and deferred mail of a period and of the "
        "one before, by mailbox provider, and the latest failures with their causes. Needs an API key with the scope "
        "statistics.",
        arguments=StatisticsInput,
        result=StatisticsResult,
        run=show_statistics,
    ),
    tool.Tool(
        name="look_up_suppression",
        title="Look up a suppressed address",
        description="Show whether mail to an address is suppressed, since when and why. Needs an API key with the "
        "scope suppressions.",
        arguments=SuppressionInput,
        result=SuppressionResult,
        run=look_up_suppression,
    ),
)
