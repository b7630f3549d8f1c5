"""`/failures`: why mail was not delivered, by cause and mailbox provider, each with what to do about it."""

from typing import Final

import msgspec

from postroad.dashboard import overview, ranges, requests
from postroad.model import caller
from postroad.model.bounces import failure_causes
from postroad.services.accounts import failure_report
from postroad.services.messages import bulk_actions
from postroad.web import routing

PATH: Final = "/failures"
NOBODY: Final = "No provider"
# Those who may not change anything can still look.
READ: Final = "Read the replies"


class Action(msgspec.Struct, frozen=True):
    """A link; `is_external` leaves the dashboard."""

    text: str
    path: str
    is_external: bool = False


class Row(msgspec.Struct, frozen=True):
    """A group with its links. `bars` are the heights of the trend in percent."""

    group: failure_report.FailureGroup
    cause: failure_causes.FailureCause
    provider: str
    path: str
    action: Action
    change: str
    bars: list[float]


async def show(request: requests.PageRequest) -> routing.Response:
    """The failures of a range."""
    query: ranges.RangeQuery = request.query
    shown = ranges.read(request, query)
    found = await failure_report.read(request.ctx, request.account_id, shown.chosen)
    may_change = request.may(caller.Permission.CHANGE)
    suppresses = request.ctx.settings.delivery.suppress
    return request.page(
        "failures.html",
        shown=shown,
        periods=ranges.PERIODS,
        found=found,
        rows=[_row(group, shown, may_change=may_change, suppresses=suppresses) for group in found.groups],
        bounced_path=shown.messages(overview.TERMS["bounced"]),
        failed_path=shown.messages(overview.TERMS["failed"]),
        overview_path=shown.path_of("/"),
    )


def _row(group: failure_report.FailureGroup, shown: ranges.ShownRange, *, may_change: bool, suppresses: bool) -> Row:
    terms = failure_causes.search_terms(group.cause), failure_causes.provider_term(group.provider)
    path = shown.messages(*terms)
    cause = group.described
    highest = max(group.trend, default=0) or 1
    return Row(
        group,
        cause,
        overview.PROVIDERS.get(group.provider, group.provider) or NOBODY,
        path,
        _action(cause.action, group, shown, terms, suppresses=suppresses) if may_change else Action(READ, path),
        f"{group.count - group.before:+,}".replace("-", "\N{MINUS SIGN}") if group.count != group.before else "",
        [round(100 * value / highest, 1) for value in group.trend],
    )


def _action(
    action: failure_causes.Action,
    group: failure_report.FailureGroup,
    shown: ranges.ShownRange,
    terms: tuple[str, ...],
    *,
    suppresses: bool,
) -> Action:
    match action:
        case failure_causes.Action.READ_GUIDANCE:
            url, title = failure_causes.GUIDANCE[group.provider]
            return Action(f"{overview.PROVIDERS[group.provider]}: {title}", url, is_external=True)
        case failure_causes.Action.CHECK_DOMAIN:
            return Action("Check the domain", "/domains")
        case failure_causes.Action.SEE_SUPPRESSIONS:
            return Action("See suppressions", "/suppressions")
        case failure_causes.Action.SUPPRESS if suppresses and group.cause not in failure_causes.FOUND_IN_DNS:
            # They were suppressed when they bounced.
            return Action("See suppressions", "/suppressions")
        case failure_causes.Action.SUPPRESS:
            return Action("Suppress these addresses", shown.bulk(bulk_actions.Action.SUPPRESS, *terms))
        case failure_causes.Action.RESEND if group.example is None:
            # Counts are kept longer than messages, of which there may be none any more.
            return Action(READ, shown.messages(*terms))
        case failure_causes.Action.RESEND:
            return Action("Resend these messages", shown.bulk(bulk_actions.Action.RESEND, *terms))
        case failure_causes.Action.READ_REPLY:
            return Action(READ, shown.messages(*terms))


ROUTES: Final = (requests.get(PATH, show, query=ranges.RangeQuery),)
