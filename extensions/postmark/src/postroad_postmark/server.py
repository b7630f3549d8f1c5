"""`/server` and `/stats/outbound`: the account as a server of Postmark, and its counts of the last 30 days."""

from typing import Final

from postroad import config, context
from postroad.api import extension_api
from postroad.model.people import callers
from postroad.model.units import chart_ranges, times
from postroad.services.accounts import account_registry, statistics
from postroad.web import routing
from postroad_postmark import numbers, schemas


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """The account; keys are never shown."""
    account = await account_registry.find(ctx, request.caller.account_id)
    return extension_api.respond(
        {
            "ID": numbers.of(account.id),
            "Name": account.name,
            "ApiTokens": [],
            "ServerLink": config.public_url(ctx.settings) or config.local_url(ctx.settings),
            "Color": "Grey",
            "SmtpApiActivated": True,
            "RawEmailEnabled": False,
            "DeliveryType": "Sandbox" if request.caller.is_test else "Live",
            "TrackOpens": False,
            "TrackLinks": "None",
            "IncludeBounceContentInHook": False,
            "EnableSmtpApiErrorHooks": False,
            "InboundAddress": "",
            "InboundHash": "",
            "InboundSpamThreshold": 0,
            "PostFirstOpenOnly": False,
            "InboundHookUrl": "",
            "BounceHookUrl": "",
            "OpenHookUrl": "",
            "DeliveryHookUrl": "",
            "ClickHookUrl": "",
        }
    )


async def overview(ctx: context.Context, request: routing.Request) -> routing.Response:
    """What was sent, and how it ended."""
    totals = (await _overview(ctx, request)).totals
    rate = round(100 * totals.bounced / totals.recipients, 3) if totals.recipients else 0
    return extension_api.respond(
        {
            "Sent": totals.recipients,
            "Bounced": totals.bounced,
            "SMTPApiErrors": 0,
            "BounceRate": rate,
            "SpamComplaints": 0,
            "SpamComplaintsRate": 0,
            "Tracked": 0,
            "WithOpenTracking": 0,
            "WithLinkTracking": 0,
            "TotalTrackedLinksSent": 0,
            "WithClientRecorded": 0,
            "WithPlatformRecorded": 0,
            "WithReadTimeRecorded": 0,
            "Opens": 0,
            "UniqueOpens": 0,
            "TotalClicks": 0,
            "UniqueLinksClicked": 0,
        }
    )


async def sends(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Recipients of accepted mail, by day."""
    found = await _overview(ctx, request)
    days = [
        {"Date": times.to_wire(start)[:10], "Sent": count}
        for start, count in zip(found.series.starts, found.series.recipients, strict=True)
    ]
    return extension_api.respond({"Days": days, "Sent": found.totals.recipients})


async def bounces(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Bounced recipients, by day. Their kinds are not counted apart."""
    found = await _overview(ctx, request)
    days = [
        {"Date": times.to_wire(start)[:10], "HardBounce": count}
        for start, count in zip(found.series.starts, found.series.bounced, strict=True)
    ]
    return extension_api.respond({"Days": days, "HardBounce": found.totals.bounced})


async def _overview(ctx: context.Context, request: routing.Request) -> statistics.Overview:
    month = chart_ranges.of_period(chart_ranges.Period.MONTH, now=ctx.clock())
    return await statistics.overview(ctx, request.caller.account_id, month)


_SCOPE: Final = callers.Scope.STATISTICS
ROUTES: Final = (
    extension_api.route("GET /server", show, scope=_SCOPE),
    extension_api.route("GET /stats/outbound", overview, query=schemas.NoQuery, scope=_SCOPE),
    extension_api.route("GET /stats/outbound/sends", sends, query=schemas.NoQuery, scope=_SCOPE),
    extension_api.route("GET /stats/outbound/bounces", bounces, query=schemas.NoQuery, scope=_SCOPE),
)
