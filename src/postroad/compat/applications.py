"""The compatible APIs, and the application that serves one."""

import dataclasses
import functools
from typing import Final

from postroad import context, errors
from postroad.compat import compatible_api
from postroad.compat.postmark import api as postmark
from postroad.compat.resend import api as resend
from postroad.concurrency import fairness
from postroad.model.people import callers
from postroad.services.people import authentication, step_up
from postroad.telemetry import logs
from postroad.web import application, request_reader, routing
from postroad.web import application as web_proxies

APIS: Final = (resend.API, postmark.API)


def routes(api: compatible_api.CompatibleApi) -> tuple[compatible_api.Route, ...]:
    """The routes of a compatible API, with its prefix."""
    return tuple(dataclasses.replace(route, path=api.prefix + route.path) for route in api.routes)


def build_application(
    ctx: context.Context,
    api: compatible_api.CompatibleApi,
    *,
    log: logs.Logger,
    require: application.Require = authentication.require,
    proxies: web_proxies.Proxies | None = None,
    large_body_slots: request_reader.LargeBodySlots | None = None,
    delays: fairness.ResponseDelays | None = None,
) -> application.Application[context.Context]:
    """The application of a compatible API.

    It is for API keys. A person's token must be confirmed for all of it: keys, secrets and exports are among its
    routes.
    """
    offered = routes(api)
    labels = frozenset(f"{route.method} {route.path}" for route in offered)

    async def authenticate(asked: context.Context, headers: routing.Headers, *, client_address: str) -> callers.Caller:
        try:
            credential = api.credential(headers)
        except errors.InvalidRequest as problem:  # a repeated header field
            raise errors.Unauthorized(problem.message) from None
        return await authentication.authenticate(asked, credential, client_address=client_address)

    def require_scope(
        who: callers.Caller, permission: callers.Permission, *, scope: callers.Scope | None, client_address: str
    ) -> None:
        try:
            require(who, permission, scope=scope, client_address=client_address)
        except errors.Unauthorized as refusal:
            raise compatible_api.RestrictedKey(refusal.message) from None

    return application.Application(
        ctx,
        offered,
        authenticate=authenticate,
        require=require_scope,
        bind_actor=context.acting_as,
        confirmation=application.Confirmation(labels, step_up.refuse_unconfirmed),
        render_error=functools.partial(compatible_api.render_error, api),
        proxies=proxies,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=log,
        counted=ctx.metrics,
        large_body_slots=large_body_slots,
        threads=ctx.threads,
        delays=delays,
    )
