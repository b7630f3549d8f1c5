"""How many files one message runs through: a send, its delivery, its webhook, and the page that lists it.

Counted are the files of the service of which at least one function is called, imports aside. A first message goes
before the traced ones, so that what is prepared once is not counted; a file counts if it is on every one of them. Time
goes slowly meanwhile, so that no timer is on all of them on a busy machine.

Leaves are apart: pure values and functions of `protocol/` and `model/`, and logs and metrics. Nothing happens next in
them, so whoever follows a message looks there for a detail only. A page begins as every request does: its walk is what
it has beside the files of a send. `python -m tests.test_walks` prints all of them in the order of the first call.
"""

import asyncio
import contextlib
import sys
import tempfile
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

import apsw
import httpx

import postroad
from postroad import config, context, roles
from postroad.dashboard.framework import cookies
from postroad.model.people import callers
from postroad.roles import composition, service
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import credentials
from postroad.services.people import users as account_users
from postroad.services.webhooks import endpoints
from postroad.telemetry import logs
from tests import accepted_mail, contexts, dns_server, smtp_peers, webhook_rows, webhook_server
from tests.delivery import engine_harness

CEILINGS: Final = {"send": 27, "delivery": 30, "webhook": 15, "page": 14}
LEAVES: Final = ("protocol/", "model/", "telemetry/")
SOURCE: Final = str(Path(postroad.__file__).parent) + "/"
TIMEOUT_SECONDS: Final = 30
# Seconds that pass for one that timers see while a message is followed.
SLOWNESS: Final = 20
BODY: Final = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Your order", "text": "On its way."}
# Engines work when they are woken up, so that the walks stay apart.
RARELY: Final = 60_000


class Tracer:
    """Notes files in the order of their first call, in every thread that starts after `install`."""

    def __init__(self) -> None:
        self.files: dict[str, None] | None = None

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        files = self.files
        if files is not None and event == "call":
            code = frame.f_code
            if code.co_filename.startswith(SOURCE) and code.co_name != "<module>":
                files.setdefault(code.co_filename.removeprefix(SOURCE))

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Trace this thread and those that start in the block."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    async def walk(
        self, step: Callable[[], Awaitable[None]], *, prepare: Callable[[], Awaitable[None]] | None = None
    ) -> list[str]:
        """The files that a step runs through each time when it was taken before, leaves and all."""
        found: list[list[str]] = []
        for _ in range(5):
            if prepare is not None:
                await prepare()
            files = self.files = {}
            try:
                with _slow_time():
                    await asyncio.wait_for(step(), TIMEOUT_SECONDS)
            finally:
                self.files = None
            found.append(list(files))
        return [file for file in found[1] if all(file in other for other in found[2:])]


@contextlib.contextmanager
def _slow_time() -> Iterator[None]:
    loop = asyncio.get_running_loop()
    real_time, began = loop.time, loop.time()
    loop.time = lambda: began + (real_time() - began) / SLOWNESS  # type: ignore[method-assign]
    try:
        yield
    finally:
        loop.time = real_time  # type: ignore[method-assign]


async def walks(folder: Path) -> dict[str, list[str]]:
    """The four walks, on SQLite; each role works alone, in a context of its own."""
    tracer = Tracer()
    with tracer.installed(), (folder / "log").open("w") as stream:
        log = logs.configure(form="json", level="info", stream=stream)
        async with (
            smtp_peers.serving() as sink,
            webhook_server.running(tls=False) as hooks,
            dns_server.running(engine_harness.zones_of({engine_harness.HOST: "127.0.0.1"})) as dns,
        ):
            settings = config.load(
                environment={},
                overrides={
                    "database": {"url": f"sqlite:///{folder / 'mail.db'}"},
                    "security": {"installation_key": contexts.SECRET_KEY},
                    "http": {"listen": "127.0.0.1:0"},
                    "warmup": {"enabled": False},
                    "delivery": {
                        "mx_port": sink.port,
                        "resolvers": [dns.address],
                        "allow_private": ["127.0.0.0/8"],
                        "hostname": "mail.example.org",
                    },
                    "webhooks": {"allow_insecure": True},
                    "testing": {"poll_milliseconds": RARELY},
                },
            )
            async with composition.open_context(settings) as office:
                account = await accounts.create(office, "Shop")
                await accepted_mail.allow_sending(office, account.id)
                await endpoints.save(office, account.id, url=hooks.url)
                found = {}
                async with _role(settings, "api", log) as (_, addresses):
                    base_url = "http://{}:{}".format(*addresses["http"])
                    found["send"] = await _walk_send(tracer, office, account.id, base_url)
                    found["page"] = await _walk_page(tracer, office, account.id, base_url)
                with contextlib.closing(apsw.Connection(str(folder / "mail.db"))) as database:
                    # Read past the store, whose calls would be part of the walk.
                    async with _role(settings, "delivery", log) as (ctx, _):

                        async def accept() -> None:
                            await accepted_mail.accept(office, account.id)

                        left = "SELECT COUNT(*) FROM queue"
                        found["delivery"] = await _walk_engine(tracer, accept, ctx.mail_wakeup, database, left)
                    async with _role(settings, "webhooks", log) as (ctx, _):

                        async def write() -> None:
                            await webhook_rows.put(office, account.id)

                        left = "SELECT COUNT(*) FROM webhook_deliveries WHERE state <> 'succeeded'"
                        found["webhook"] = await _walk_engine(tracer, write, ctx.webhook_wakeup, database, left)
                return found


async def _walk_engine(
    tracer: Tracer,
    prepare: Callable[[], Awaitable[None]],
    wakeup: asyncio.Event,
    database: apsw.Connection,
    left: str,
) -> list[str]:
    async def work() -> None:
        wakeup.set()
        while database.execute(left).fetchone() != (0,):
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.005)  # the log line

    return await tracer.walk(work, prepare=prepare)


async def _walk_send(tracer: Tracer, office: context.Context, account_id: str, base_url: str) -> list[str]:
    credential, password = await credentials.create(office, account_id, "main")
    login = credential.username, password
    async with httpx.AsyncClient(base_url=base_url, auth=login, timeout=TIMEOUT_SECONDS) as http:

        async def send() -> None:
            response = await http.post("/emails", json=BODY, headers={"Idempotency-Key": uuid.uuid4().hex})
            assert response.status_code == httpx.codes.ACCEPTED, response.text

        return await tracer.walk(send)


async def _walk_page(tracer: Tracer, office: context.Context, account_id: str, base_url: str) -> list[str]:
    user, _ = await account_users.create(
        office, account_id, email="owner@example.com", password=contexts.PASSWORD, role=callers.Role.OWNER
    )
    session = await contexts.begin_session(office, user)
    async with httpx.AsyncClient(
        base_url=base_url, cookies={cookies.SESSION: session.token}, timeout=TIMEOUT_SECONDS
    ) as http:

        async def read() -> None:
            response = await http.get("/messages")
            assert response.status_code == httpx.codes.OK, response.text
            assert BODY["subject"] in response.text

        return await tracer.walk(read)


@contextlib.asynccontextmanager
async def _role(
    settings: config.Settings, name: str, log: logs.Logger
) -> AsyncIterator[tuple[context.Context, Mapping[str, Any]]]:
    """A role with a context of its own, as a process of a larger installation has it."""

    async def no_metrics() -> bytes:
        return b""

    async with composition.open_context(settings) as ctx, asyncio.TaskGroup() as group:
        role_context = roles.RoleContext(ctx, log, asyncio.Event(), no_metrics)
        started = await service.ROLES[name](role_context)

        async def work() -> None:
            await started.work()

        group.create_task(work())
        try:
            yield ctx, started.addresses
        finally:
            role_context.stopping.set()


def followed(found: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """What a reader has to follow of each walk."""
    own = {name: [file for file in files if not file.startswith(LEAVES)] for name, files in found.items()}
    return {**own, "page": [file for file in own["page"] if file not in own["send"]]}


def test_few_files_are_on_the_way_of_a_message(tmp_path: Path) -> None:
    found = asyncio.run(walks(tmp_path))
    assert {name: files for name, files in followed(found).items() if len(files) > CEILINGS[name]} == {}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        walked = asyncio.run(walks(Path(place)))
    to_follow = followed(walked)
    for walk_name, walk_files in walked.items():
        leaves = sum(file.startswith(LEAVES) for file in walk_files)
        rest = len(walk_files) - leaves - len(to_follow[walk_name])
        shared = f", {rest} that a send has too" if rest else ""
        sys.stdout.write(f"\n{walk_name} ({len(to_follow[walk_name])} files, {leaves} leaves{shared})\n")
        for file in walk_files:
            sys.stdout.write(f"  {'' if file in to_follow[walk_name] else '  '}{file}\n")
