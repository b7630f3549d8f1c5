"""The API of an installation of this machine, for commands that otherwise use a server.

The requests are handled in this process, so nobody listens and no API key is needed: who can read the settings and the
key of the installation operates it. Changes are in the audit log as those of other operator commands.
"""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import postroad
from postroad import config
from postroad import context as services_context
from postroad.api import routes as api_routes
from postroad.api.operator import routes as operator_routes
from postroad.cli.framework import command
from postroad.model.people import callers
from postroad.network.http import api_client
from postroad.roles import composition
from postroad.services.operations import operator_jobs, operator_state
from postroad.services.people import authentication
from postroad.telemetry import logs
from postroad.web import application, local_api, routing

T = TypeVar("T")


class LocalServer(api_client.Client):
    """Calls the API as the operator, in the account that is named; without one, only the operator's part works."""

    def __init__(self, settings: config.Settings, *, account: str | None, needs_account: bool) -> None:
        url = config.public_url(settings) or config.local_url(settings)
        super().__init__(f"{url}, on this host", "", user_agent=f"postroad/{postroad.__version__}")
        self._opened = contextlib.AsyncExitStack()
        # A count of the queue goes on between two requests.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="api", daemon=True)
        self._thread.start()
        try:
            self._api = self._wait(self._open(settings, account, needs_account=needs_account))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End what was opened; nothing can be called afterwards."""
        self._wait(self._opened.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> api_client.Response:
        status, answer = self._wait(self._api.send(method, path, body=body or b"", headers=headers))
        return api_client.Response(status, answer, None)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self, settings: config.Settings, account: str | None, *, needs_account: bool) -> local_api.LocalApi:
        command.announce_new_database(settings.database.url)
        ctx = await self._opened.enter_async_context(composition.open_context(settings))
        account_id = (await command.named_account(ctx, account)).id if account or needs_account else ""
        permissions = callers.EVERYTHING | callers.OPERATOR_PERMISSIONS
        operator = callers.Caller(account_id, None, callers.Scheme.TOKEN, permissions)

        async def authenticate(
            ctx: services_context.Context, headers: routing.Headers, /, *, client_address: str
        ) -> callers.Caller:
            del ctx, headers, client_address
            return operator

        log = logs.configure(form="console", level="error", stream=sys.stderr)
        state = operator_state.OperatorState(operator_jobs.Jobs(log))
        self._opened.push_async_callback(state.close)
        app = application.Application(
            ctx,
            (*api_routes.ROUTES, *operator_routes.build(state)),
            authenticate=authenticate,
            require=authentication.require,
            clock=ctx.clock,
            entropy=ctx.entropy,
            log=log,
        )
        return local_api.LocalApi(app, authorization=b"", client_address="")
