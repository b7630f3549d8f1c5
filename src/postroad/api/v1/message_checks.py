"""`/v1/messages/{id}/checks`: what may go wrong with the content of a message, as on its page of the dashboard."""

from typing import Final

import msgspec

from postroad import context
from postroad.api.v1 import resource
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.network import spamd
from postroad.services.messages import content_checks
from postroad.services.messages import lookup as messages
from postroad.web import routing

RESOURCE: Final = resource.Resource("Messages", {"id": identifiers.pattern(identifiers.MESSAGE)})


class CheckedLink(msgspec.Struct, frozen=True):
    """A link in the HTML, with its line and its problems."""

    url: str
    text: str
    line: int
    problems: list[str]


class SpamVerdict(msgspec.Struct, frozen=True):
    """The score of SpamAssassin; `error` says why there is none."""

    is_spam: bool | None = None
    score: float | None = None
    threshold: float | None = None
    report: str | None = None
    error: str | None = None


class MessageChecks(resource.Response, frozen=True):
    """The results of all checks. `spam` is null where the operator has no SpamAssassin."""

    headers: list[content_checks.CheckFinding]
    content: list[content_checks.CheckFinding]
    links: list[CheckedLink]
    more_links: int
    features: list[content_checks.LimitedFeature]
    spam: SpamVerdict | None
    is_truncated: bool


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Check the content of a message.

    Header fields and alignment, size, links, and the HTML and CSS that mail clients do not support. No link is opened.
    Also not found when the content is no longer retained.
    """
    message_id = request.path["id"]
    await messages.check_mode(ctx, request.caller, message_id)
    report = await content_checks.of_message(ctx, request.caller.account_id, message_id)
    return routing.Response(
        200,
        MessageChecks(
            headers=report.headers,
            content=report.content,
            links=[
                CheckedLink(checked.link.url, checked.link.text, checked.link.line, checked.problems)
                for checked in report.links
            ],
            more_links=report.more_links,
            features=report.features,
            spam=_spam(report.spam),
            is_truncated=report.truncated,
            request_id=request.id,
        ),
    )


def _spam(found: spamd.Verdict | spamd.Failure | None) -> SpamVerdict | None:
    if found is None:
        return None
    if isinstance(found, spamd.Failure):
        return SpamVerdict(error=found.detail)
    return SpamVerdict(found.is_spam, found.score, found.threshold, found.report)


ROUTES: Final = (
    RESOURCE.route(
        "GET /v1/messages/{id}/checks",
        show,
        permission=callers.Permission.CONTENT,
        responses={200: MessageChecks},
    ),
)
