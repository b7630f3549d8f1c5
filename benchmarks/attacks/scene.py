"""A service with the defaults of an installation, two frontends on SQLite, and two accounts: a victim and an attacker.

It is prepared once. Every attack begins with a copy of the same database, so that none suffers from the one before.
"""

import asyncio
import contextlib
import pathlib
import secrets
import shutil
import typing

from benchmarks import browsers, large_account, message
from benchmarks.attacks import outside
from benchmarks.peers import postroad, process, stores
from postroad import config, context
from postroad.mail.signing import domain_keys
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits as account_credits
from postroad.services.domains import domain_registry as domains
from postroad.services.inbound import routes
from postroad.services.people import api_keys, credentials, users
from postroad.services.templates import templates
from postroad.services.webhooks import endpoint_settings, endpoints

# What is not a default: where things are, and nothing that would ask hosts outside.
CONFIGURATION = """
[database]
url = "sqlite:///{database}"

[http]
processes = 2
listen = "127.0.0.1:{http}"
drain_seconds = 0

[submission]
listen = "127.0.0.1:{submission}"
auth_without_tls = true

[inbound]
listen = "127.0.0.1:{inbound}"

[delivery]
resolvers = ["{name_server}"]
mx_port = {mx_port}
allow_private = ["127.0.0.0/8"]
hostname = "postroad.example.com"
return_path_domain = "bounces.example.com"

[webhooks]
allow_private = ["127.0.0.0/8"]
ca_file = "{authority}"

[doctor]
probe_host = ""

[shutdown]
grace_seconds = 1

[testing]
hourly_checks = false

[security]
installation_key = "{installation_key}"
"""
VICTIM_DOMAIN = "shop.example"
VICTIM_EMAIL, ATTACKER_EMAIL = "owner@shop.example", "owner@example.com"
TEST_KEYS = 12
# Of the attacker, for searches and exports.
MESSAGES = 20_000
# Close to the 100,000 steps that one rendering may take, in each of its two parts.
COSTLY = "{{#rows}}{{#cells}}{{value}}{{/cells}}{{/rows}}"
CREDITS = 1_000_000_000
# The endpoints of the attacker that never answer; only mail with this tag concerns them.
HANGING_ENDPOINTS = 10
HANGING_TAG = "hanging"
# A route of the attacker, which stores mail.
ROUTE = f"inbox@in.{message.SENDER.partition('@')[2]}"


class Party(typing.NamedTuple):
    """An account: its API key, SMTP login, and the login of its owner."""

    key: str
    username: str
    smtp_password: str
    email: str
    password: str


class Attacker(typing.NamedTuple):
    """What the attacker has: keys of all kinds, those for tests each of another credential, and the owner's login."""

    key: str
    test_keys: list[str]
    approval_key: str
    email: str
    password: str


class Scene(typing.NamedTuple):
    """An installation that is prepared, and can be started."""

    folder: pathlib.Path
    configuration: pathlib.Path
    http: int
    submission: int
    inbound: int
    hooks: str
    victim: Party
    attacker: Attacker

    @property
    def database(self) -> pathlib.Path:
        """The file of the running service."""
        return self.folder / "mail.db"

    def stored_bytes(self) -> int:
        """What the database takes on the disk."""
        return sum(path.stat().st_size for path in self.folder.glob("mail.db*"))

    @contextlib.contextmanager
    def started(self) -> typing.Iterator[None]:
        """The service on a fresh copy of the database; stopped at the end."""
        for path in self.folder.glob("mail.db*"):
            path.unlink()
        shutil.copyfile(self.folder / "prepared.db", self.database)
        installation = postroad.Installation(
            folder=self.folder, port=self.http, api_key=self.victim.key, configuration=self.configuration
        )
        with postroad.serving(installation, processes=postroad.ALL_ROLES):
            yield

    def cookies(self, party: Party | Attacker) -> str:
        """The session of its owner, who logs in now."""
        browser = browsers.Browser(self.http, email=party.email, password=party.password)
        browser.close()
        return browser.headers["Cookie"]


def prepare(folder: pathlib.Path, around: outside.Outside, *, messages: int = MESSAGES, settings: str = "") -> Scene:
    """Write settings and database; the attacker has so many messages, and `settings` are more than those above."""
    folder.mkdir()
    configuration, database = folder / "postroad.toml", folder / "mail.db"
    http, submission, inbound = process.free_ports(3)
    written = CONFIGURATION.format(
        database=database,
        http=http,
        submission=submission,
        inbound=inbound,
        name_server=around.name_server,
        mx_port=around.mx_port,
        authority=around.authority,
        installation_key=secrets.token_urlsafe(48),
    )
    configuration.write_text(written + settings)
    store = stores.SqliteFile(database)
    victim, attacker = asyncio.run(_populate(configuration, around, store, messages=messages))
    store.load("")  # nothing is left in the write-ahead log, which is not copied
    database.rename(folder / "prepared.db")
    return Scene(
        folder=folder,
        configuration=configuration,
        http=http,
        submission=submission,
        inbound=inbound,
        hooks=around.hooks,
        victim=victim,
        attacker=attacker,
    )


async def _populate(
    configuration: pathlib.Path, around: outside.Outside, store: stores.SqliteFile, *, messages: int
) -> tuple[Party, Attacker]:
    async with composition.open_context(config.load(configuration, environment={})) as ctx:
        account_id = await _account(ctx, "Attacker", message.SENDER.partition("@")[2])
        await asyncio.to_thread(large_account.write, store, account_id, password="", messages=messages, queued=0)
        return await _victim(ctx, around), await _attacker(ctx, account_id, around)


async def _account(ctx: context.Context, name: str, domain_name: str) -> str:
    """An account that may send, from a domain that it has used for long."""
    account = await accounts.create(ctx, name)
    await account_credits.add(ctx, account.id, CREDITS, None)
    domain = await domains.add(ctx, account.id, domain_name, verified=True)
    await domains.set_warm(ctx, account.id, domain.id, warm=True)
    await domain_keys.keys(ctx, domain)
    return account.id


async def _victim(ctx: context.Context, around: outside.Outside) -> Party:
    account_id = await _account(ctx, "Victim", VICTIM_DOMAIN)
    await endpoints.create(ctx, account_id, endpoint_settings.Changes(url=f"{around.hooks}/victim"))
    login, smtp_password = await credentials.create(ctx, account_id, "victim")
    key = await _key(ctx, account_id, credential_id=login.id)
    _, password = await users.create(ctx, account_id, email=VICTIM_EMAIL, password=None, role=callers.Role.OWNER)
    return Party(key, login.username, smtp_password, VICTIM_EMAIL, password)


async def _attacker(ctx: context.Context, account_id: str, around: outside.Outside) -> Attacker:
    await templates.put(ctx, account_id, "costly", subject="Offers", text=COSTLY, html=COSTLY)
    for endpoint in await endpoints.of_account(ctx, account_id):  # that of the month
        await endpoints.remove(ctx, account_id, endpoint.id)
    for number in range(HANGING_ENDPOINTS):
        url = around.hooks.replace("//", f"//a{number}.")
        await endpoints.create(ctx, account_id, endpoint_settings.Changes(url=f"{url}/hangs", tags=[HANGING_TAG]))
    await routes.add(ctx, account_id, ROUTE)
    test_keys = []
    for number in range(TEST_KEYS):
        login, _ = await credentials.create(ctx, account_id, f"attacker {number}")
        test_keys.append(await _key(ctx, account_id, credential_id=login.id, mode=statuses.Mode.TEST))
    _, password = await users.create(ctx, account_id, email=ATTACKER_EMAIL, password=None, role=callers.Role.OWNER)
    return Attacker(
        key=await _key(ctx, account_id, scopes=frozenset({callers.EVERY_SCOPE})),
        test_keys=test_keys,
        approval_key=await _key(ctx, account_id, limits=callers.KeyLimits(approval_above=1)),
        email=ATTACKER_EMAIL,
        password=password,
    )


async def _key(
    ctx: context.Context,
    account_id: str,
    *,
    credential_id: str | None = None,
    scopes: frozenset[str] = frozenset({callers.Scope.SEND}),
    mode: statuses.Mode = statuses.Mode.LIVE,
    limits: callers.KeyLimits = callers.NO_LIMITS,
) -> str:
    _, secret = await api_keys.create(
        ctx, account_id, credential_id=credential_id, name="default", scopes=scopes, mode=mode, limits=limits
    )
    return secret
