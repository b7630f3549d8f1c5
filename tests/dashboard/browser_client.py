"""Browsers of users who are logged in, over the real application of the dashboard, on a real store.

`mine` and `theirs` are accounts of one service. `browser` is an owner of `mine`, to which `member`, `analyst` and
`reader` belong with smaller roles; `stranger` is an owner of `theirs`; `nobody` is not logged in. `operator` only reads
in `mine`, and operates the installation.
"""

import contextlib
import dataclasses
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib import parse

import httpx
import pytest
import pytest_asyncio
import structlog

from postroad import config, context
from postroad.dashboard import application as dashboard_application
from postroad.dashboard.framework import cookies
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import dev_inbox
from postroad.services.operations import operator_jobs, operator_state
from postroad.services.operations.checks import findings, table
from postroad.services.people import sessions
from postroad.services.people import users as account_users
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users
from postroad.telemetry import logs
from postroad.web import application
from tests import asgi, contexts, webhook_rows

BASE_URL = "http://postroad.test"
# As browsers say it when somebody follows a link or sends a form.
ACCEPT = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
# As browsers read it: scripts, styles, images, fonts, requests and forms of this origin, and no frame of another one.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# For the HTML of a message, which does nothing and loads nothing.
PREVIEW_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'; sandbox"
)
Fields = Mapping[str, str | Sequence[str]]
Served = application.Application[context.Context]


@dataclass(slots=True)
class Switch:
    """Whether the service is stopping: streams end then."""

    stopping: bool = False

    def __call__(self) -> bool:
        return self.stopping


@dataclass(frozen=True, slots=True)
class Browser:
    """Somebody with a browser. `client` sends what no page would."""

    client: httpx.AsyncClient
    user: users.User | None = None
    session: sessions.Session | None = None
    csrf_token: str = field(default="", repr=False)

    @property
    def account_id(self) -> str:
        """The account of whoever is logged in."""
        assert self.user is not None
        return self.user.account_id

    async def get(self, path: str, **more: str) -> httpx.Response:
        """Open a page; `more` are parameters of its address."""
        return await self.client.get(path, params=more or None)

    async def post(self, path: str, fields: Fields | None = None) -> httpx.Response:
        """Send a form with the CSRF token of the session."""
        return await self.client.post(path, data={"csrf_token": self.csrf_token, **(fields or {})})

    async def follow(self, response: httpx.Response) -> httpx.Response:
        """Go where an answer sends a browser; the page there shows what was done."""
        assert response.status_code == 303, response.text
        return await self.client.get(response.headers["location"])


def notice_of(response: httpx.Response) -> str:
    """What the next page will say was done."""
    for name in (cookies.NOTICE, f"__Host-{cookies.NOTICE}"):
        if name in response.cookies:
            return cookies.decode_notice(response.cookies[name]).text
    return ""


def location_of(response: httpx.Response) -> str:
    """Where an answer sends a browser, without parameters."""
    return parse.urlsplit(response.headers["location"]).path


@contextlib.asynccontextmanager
async def open_client(served: Served, *, base_url: str = BASE_URL) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without cookies."""
    # What breaks is answered with 500, as it would be: nothing is raised through the client.
    transport = httpx.ASGITransport(asgi.of(served), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=base_url, headers=ACCEPT, timeout=60) as client:
        yield client


@contextlib.asynccontextmanager
async def open_browser(
    ctx: context.Context, served: Served, user: users.User, *, base_url: str = BASE_URL
) -> AsyncIterator[Browser]:
    """The browser of a user who has just logged in."""
    session = await contexts.begin_session(ctx, user)
    name = f"__Host-{cookies.SESSION}" if base_url.startswith("https://") else cookies.SESSION
    async with open_client(served, base_url=base_url) as client:
        client.cookies.set(name, session.token, domain=parse.urlsplit(base_url).hostname or "")
        yield Browser(client, user, session, sessions.csrf_token(ctx, session))


async def person(ctx: context.Context, account_id: str, email: str, role: callers.Role) -> users.User:
    """Somebody whose password is `contexts.PASSWORD`."""
    user, _ = await account_users.create(ctx, account_id, email=email, password=contexts.PASSWORD, role=role)
    return user


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    """The defaults, with an endpoint for webhooks that tests may call public, and without warm-up."""
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"installation_key": contexts.SECRET_KEY},
            "warmup": {"enabled": False},
            "webhooks": {"allow_private": webhook_rows.PUBLIC},
        },
    )


def build_site(settings: config.Settings, *, inbox: dev_inbox.Inbox | None = None) -> sites.Site:
    """The dashboard of a process that does not stop."""
    state = operator_state.OperatorState(operator_jobs.Jobs(quiet_log()))
    return sites.build(settings, mail=inbox, is_stopping=bool, operator_state=state)


@pytest.fixture(scope="session")
def prepared() -> sites.Site:
    """The pages and files, read once for all tests."""
    return build_site(config.load(environment={}, overrides={}))


@pytest.fixture
def switch() -> Switch:
    return Switch()


@pytest.fixture
def mail(ctx: context.Context) -> dev_inbox.Inbox:
    """What the simulator has received."""
    return dev_inbox.Inbox(clock=ctx.clock, entropy=ctx.entropy)


@pytest.fixture
def site(prepared: sites.Site, settings: config.Settings, switch: Switch, mail: dev_inbox.Inbox) -> sites.Site:
    """The dashboard as `postroad dev` has it: with the inbox."""
    state = operator_state.OperatorState(operator_jobs.Jobs(quiet_log()))
    return dataclasses.replace(
        prepared,
        base_url=settings.http.base_url,
        mail=mail,
        is_stopping=switch,
        operator_state=state,
        fingerprints=sites.FingerprintCache(),
    )


def quiet_log() -> logs.Logger:
    """A log that shows only what broke, with the output of a test that fails."""
    shown = structlog.make_filtering_bound_logger("error")
    log: logs.Logger = structlog.wrap_logger(structlog.PrintLogger(sys.stderr), wrapper_class=shown)
    return log


def serve(ctx: context.Context, site: sites.Site) -> Served:
    """The whole dashboard."""
    return dashboard_application.build_application(ctx, site, log=quiet_log())


@pytest.fixture
def served(ctx: context.Context, site: sites.Site) -> Served:
    return serve(ctx, site)


@pytest_asyncio.fixture
async def mine(ctx: context.Context) -> stored_accounts.Account:
    return await accounts.create(ctx, "Mine")


@pytest_asyncio.fixture
async def theirs(ctx: context.Context) -> stored_accounts.Account:
    return await accounts.create(ctx, "Theirs")


@pytest_asyncio.fixture
async def browser(ctx: context.Context, served: Served, mine: stored_accounts.Account) -> AsyncIterator[Browser]:
    user = await person(ctx, mine.id, "owner@mine.example", callers.Role.OWNER)
    async with open_browser(ctx, served, user) as opened:
        yield opened


@pytest_asyncio.fixture
async def member(ctx: context.Context, served: Served, mine: stored_accounts.Account) -> AsyncIterator[Browser]:
    user = await person(ctx, mine.id, "member@mine.example", callers.Role.DEVELOPER)
    async with open_browser(ctx, served, user) as opened:
        yield opened


@pytest_asyncio.fixture
async def reader(ctx: context.Context, served: Served, mine: stored_accounts.Account) -> AsyncIterator[Browser]:
    user = await person(ctx, mine.id, "reader@mine.example", callers.Role.READ_ONLY)
    async with open_browser(ctx, served, user) as opened:
        yield opened


@pytest_asyncio.fixture
async def analyst(ctx: context.Context, served: Served, mine: stored_accounts.Account) -> AsyncIterator[Browser]:
    user = await person(ctx, mine.id, "analyst@mine.example", callers.Role.ANALYST)
    async with open_browser(ctx, served, user) as opened:
        yield opened


@pytest_asyncio.fixture
async def stranger(ctx: context.Context, served: Served, theirs: stored_accounts.Account) -> AsyncIterator[Browser]:
    user = await person(ctx, theirs.id, "owner@theirs.example", callers.Role.OWNER)
    async with open_browser(ctx, served, user) as opened:
        yield opened


@pytest_asyncio.fixture
async def operator(
    ctx: context.Context, served: Served, mine: stored_accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Browser]:
    async def check(_given: object) -> list[findings.Finding]:
        return [findings.ok("enough space"), findings.warning("almost full", "Delete something.")]

    # The real ones look at this host, and at its DNS.
    monkeypatch.setattr(table, "CHECKS", {"disk": table.Check(check)})
    user = await person(ctx, mine.id, "operator@mine.example", callers.Role.READ_ONLY)
    await account_users.add_operator(ctx, user.email)
    async with open_browser(ctx, served, user) as opened:
        yield opened


@pytest_asyncio.fixture
async def nobody(served: Served) -> AsyncIterator[Browser]:
    async with open_client(served) as client:
        yield Browser(client)
