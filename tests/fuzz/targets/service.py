"""A service on a store of its own, for the targets that go the whole way: an account that may send, and its callers.

The clock moves a second with each input, so that no rate is ever reached; ids are random as always. The store is in a
temporary folder and does not wait for the disk: what is looked for are inputs, not crashes of machines.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from postroad import context
from postroad.api import authentication, monitoring
from postroad.api import routes as api_routes
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import api_keys, credentials
from postroad.services.people import authentication as caller_authentication
from postroad.services.templates import templates
from postroad.storage.mail import messages
from postroad.web import application
from tests import accepted_mail, contexts
from tests.api import app_server
from tests.fuzz import target

CREDITS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class WholeService:
    """What a target needs. `lines` is what was logged since the input began."""

    ctx: context.Context
    clock: contexts.Clock
    account_id: str
    username: str
    password: str = field(repr=False)
    api_key: str = field(repr=False)
    served: application.Application[context.Context]
    lines: app_server.CapturedLog

    async def body(self, message_id: str) -> bytes:
        """A message as it is on disk."""
        async with self.ctx.store.reading() as tx:
            stored = await messages.body(tx, self.account_id, message_id)
        assert stored is not None
        return stored

    def begin(self) -> None:
        """The next input."""
        self.clock.pass_seconds(1)
        self.lines.kept.clear()

    def end(self) -> None:
        """Nothing went wrong that only the log tells."""
        wrong = [line for line in self.lines.kept if line["level"] in {"error", "critical", "exception"}]
        assert not wrong, f"it is in the log: {wrong[0].get('event')}"


Whole = Callable[[WholeService, bytes], Coroutine[Any, Any, None]]


def with_service(check: Whole) -> Callable[[], target.Opened]:
    """A target that runs in a service."""

    @contextlib.contextmanager
    def opened() -> Iterator[target.Work]:
        with tempfile.TemporaryDirectory(prefix="postroad-fuzz-") as folder, asyncio.Runner() as runner:
            stack = contextlib.AsyncExitStack()
            service = runner.run(stack.enter_async_context(_open(Path(folder))))

            async def work(data: bytes) -> None:
                service.begin()
                await check(service, data)
                service.end()

            try:
                yield lambda data: runner.run(work(data))
            finally:
                runner.run(stack.aclose())

    return opened


@contextlib.asynccontextmanager
async def _open(folder: Path) -> AsyncIterator[WholeService]:
    settings = contexts.load(
        f"sqlite:///{folder}/fuzz.sqlite", warmup={"enabled": False}, submission={"auth_without_tls": True}
    )
    clock, lines = contexts.Clock(), app_server.CapturedLog()
    async with composition.open_context(settings, clock=clock) as ctx:
        account = await accounts.create(ctx, "Fuzzed")
        await accepted_mail.allow_sending(ctx, account.id, amount=CREDITS)
        credential, password = await credentials.create(ctx, account.id, "main")
        scopes = frozenset({callers.Permission.SEND, callers.Permission.READ})
        _, secret = await api_keys.create(ctx, account.id, credential_id=credential.id, name="fuzz", scopes=scopes)
        await templates.put(
            ctx, account.id, "welcome", subject="Hello {{name}}", text="{{name}}: {{order}}", html="<b>{{name}}</b>"
        )
        served = application.Application(
            ctx,
            (*api_routes.ROUTES, *monitoring.health_routes(lambda: False)),
            authenticate=authentication.authenticate,
            require=caller_authentication.require,
            bind_actor=context.acting_as,
            clock=clock,
            entropy=os.urandom,
            log=lines.logger(),
        )
        yield WholeService(ctx, clock, account.id, credential.username, password, secret, served, lines)
