"""The API of an installation of this machine, for commands that otherwise use a server.

The requests are handled in this process, so nobody listens and no API key is needed: who can read the settings and the
key of the installation operates it. Changes are in the audit log as those of an operator.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import postroad
from postroad import config
from postroad import context as services_context
from postroad.cli.framework import command
from postroad.model.people import callers
from postroad.network.http import api_client
from postroad.roles import composition
from postroad.storage.people import accounts
from postroad.telemetry import logs

T = TypeVar("T")


class LocalServer(api_client.Client):
    """Calls the API as the operator, in one account at a time; without one, only the operator's part works."""

    def __init__(self, settings: config.Settings, *, account: str | None, needs_account: bool) -> None:
        super().__init__(
            f"{config.base_url(settings)}, on this host", "", user_agent=f"postroad/{postroad.__version__}"
        )
        self.settings = settings
        self._opened = contextlib.AsyncExitStack()
        self._api: Callable[..., Coroutine[Any, Any, tuple[int, bytes]]] | None = None
        # A count of the queue goes on between two requests.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="api", daemon=True)
        self._thread.start()
        try:
            command.announce_new_database(settings.database.url)
            self._ctx = self._wait(self._opened.enter_async_context(composition.open_context(settings)))
            self._account = self.named_account(account) if account or needs_account else None
        except BaseException:
            self.close()
            raise

    @property
    def account(self) -> accounts.Account:
        """The account of the requests, for commands of one."""
        assert self._account is not None  # noqa: S101 - they need one
        return self._account

    def act_in(self, account_id: str) -> None:
        """Make the next requests in this account."""
        self._account = self.named_account(account_id)

    def named_account(self, named: str | None) -> accounts.Account:
        return self.ask(lambda ctx: command.named_account(ctx, named))

    def owned(self, view: Mapping[str, Any]) -> dict[str, Any]:
        """What the API shows of the account's things, with the id of the account after its own."""
        return {"id": view["id"], "account_id": self.account.id, **view}

    def ask(self, question: Callable[[services_context.Context], Coroutine[Any, Any, T]]) -> T:
        """What the API does not have: ask the services directly."""
        return self._wait(question(self._ctx))

    def close(self) -> None:
        """End what was opened; nothing can be called afterwards."""
        self._wait(self._opened.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> api_client.Response:
        if self._api is None:
            self._api = self._application()
        status, answer = self._wait(self._api(method, path, body=body or b"", headers=headers))
        return api_client.Response(status, answer, None)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _application(self) -> Callable[..., Coroutine[Any, Any, tuple[int, bytes]]]:
        # Not every command calls the API, which takes a third of the time to start one.
        from postroad.api import routes as api_routes  # noqa: PLC0415
        from postroad.api.operator import routes as operator_routes  # noqa: PLC0415
        from postroad.services.operations import operator_jobs, operator_state  # noqa: PLC0415
        from postroad.services.people import authentication  # noqa: PLC0415
        from postroad.web import application, local_api, routing  # noqa: PLC0415

        async def authenticate(
            ctx: services_context.Context, headers: routing.Headers, /, *, client_address: str
        ) -> callers.Caller:
            del ctx, headers, client_address
            if self._account is None:
                return callers.Caller("", None, callers.Scheme.TOKEN, callers.OPERATOR_PERMISSIONS)
            permissions = callers.EVERYTHING | callers.OPERATOR_PERMISSIONS
            return callers.Caller(self._account.id, None, callers.Scheme.TOKEN, permissions)

        log = logs.of_command()
        state = operator_state.OperatorState(operator_jobs.Jobs(log))
        self._opened.push_async_callback(state.close)
        app = application.Application(
            self._ctx,
            (*api_routes.ROUTES, *operator_routes.build(state)),
            authenticate=authenticate,
            require=authentication.require,
            clock=self._ctx.clock,
            entropy=self._ctx.entropy,
            log=log,
        )
        return local_api.LocalApi(app, authorization=b"", client_address="").send
