"""`postroad init`: a new installation, from its answers to the DNS records to publish.

Everything is validated before anything is written, and nothing that exists is changed. The key is written before the
database that it protects, and the configuration file last: with it the installation is complete, and a run that was
interrupted continues where it stopped.
"""

import asyncio
import contextlib
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from postroad import config
from postroad import context as services_context
from postroad.api.v1 import domains as domain_views
from postroad.cli.framework import command, data_folder, output, server_command
from postroad.cli.installation import init_answers
from postroad.cli.server import domains, users
from postroad.mail.signing import domain_keys
from postroad.model.domains import host_records
from postroad.model.people import callers
from postroad.network import hostname as network_hostname
from postroad.network import listener
from postroad.protocol.mime import address
from postroad.roles import composition
from postroad.services.accounts import account_registry as services_accounts
from postroad.services.domains import domain_registry as services_domains
from postroad.services.people import password_links
from postroad.services.people import users as account_users
from postroad.storage.engine import open_store
from postroad.storage.mail import domains as stored_domains
from postroad.storage.people import accounts

Tables = Mapping[str, Mapping[str, object]]

HEAD: Final = """\
# Settings of Postroad. What is not here has its default; docs/configuration.md lists all settings.
# 'postroad check-config --config FILE' validates this file.
"""
_SECTION: Final = re.compile(r"\[(\w+)\]")
_SETTING: Final = re.compile(r"(\w+) = ")


def settings_text(chosen: Tables, *, suggested: Tables) -> str:
    """A file with these settings. The suggested ones are commented out; remove the first character of their lines."""
    comments = dict(_comments(config.defaults_text()))
    parts = [HEAD]
    for section in {**chosen, **suggested}:
        lines = [f"[{section}]" if section in chosen else f"#[{section}]"]
        for tables, prefix in ((chosen, ""), (suggested, "#")):
            for key, value in tables.get(section, {}).items():
                lines += [*comments[section, key], f"{prefix}{key} = {output.literal(value)}"]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _comments(defaults: str) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """The comment of each setting, by section and key."""
    section, above = "", list[str]()
    for line in defaults.splitlines():
        if line.startswith("#"):
            above.append(line)
            continue
        if found := _SECTION.match(line):
            section = found[1]
        elif found := _SETTING.match(line):
            yield (section, found[1]), above
        above = []


DEFAULT_DATA: Final = Path("/var/lib/postroad")
NEXT_STEPS: Final = (
    "Next: publish these DNS records, start the service, and run 'postroad doctor': it says what is missing."
)
# What is created in the database.
DATABASE_ANSWERS: Final = ("account", "domain", "email")
# One account has one; the second row says that there are more.
SEVERAL: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do. `text` is the configuration file to write; empty if there is one."""

    file: Path
    text: str
    settings: config.Settings
    account: str | None
    domain: str | None
    email: str | None


@dataclass(slots=True)
class Progress:
    """What was created and what was there, in words; the results that programs read; the texts to show."""

    created: list[str] = field(default_factory=list)
    existing: list[str] = field(default_factory=list)
    data: dict[str, object] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def note(self, what: str, *, is_new: bool) -> None:
        (self.created if is_new else self.existing).append(what)


@click.command("init")
@click.option(
    "--config", "file", type=command.FILE, metavar="FILE", help=f"File to write. {server_command.CONFIG_TEXT}"
)
@click.option("--data", type=command.FOLDER, metavar="DIR", help=f"Folder of the data. Default: {DEFAULT_DATA}.")
@click.option("--hostname", metavar="NAME", help="Public name of this host, such as mail.example.com.")
@click.option(
    "--database",
    metavar="URL",
    help="Database URL; default: SQLite in the data folder. "
    f"With a password, set {init_answers.DATABASE_VARIABLE} instead.",
)
@click.option("--account", metavar="NAME", help="Name of the first account.")
@click.option("--domain", metavar="DOMAIN", help="Its first sender domain.")
@click.option("--email", metavar="EMAIL", help="Login of its owner, and mailbox of the operator.")
@click.option(
    "--https",
    type=click.Choice([init_answers.ACME, init_answers.PROXY]),
    help=f"{init_answers.ACME}: certificates of Let's Encrypt, whose terms this accepts. "
    f"{init_answers.PROXY}, the default: by a web server.",
)
@click.option(
    "--credits",
    type=click.Choice([init_answers.ON, init_answers.OFF]),
    help=f"{init_answers.ON}: charge accounts a credit for each recipient, for those who sell mail. "
    f"{init_answers.OFF}, the default: do not.",
)
@click.option("--yes", is_flag=True, help="Ask nothing, as without a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def init(
    *,
    file: Path | None,
    data: Path | None,
    hostname: str | None,
    database: str | None,
    account: str | None,
    domain: str | None,
    email: str | None,
    https: str | None,
    credits: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Set up an installation: settings, key, database, first account and domain. What exists is kept.

    It asks for what the options do not give, unless there is no terminal; prints the DNS records to publish; and ends
    with a link for the owner, who becomes the first operator. Run it again with the same options to continue after an
    interruption.
    """
    asks = not yes and sys.stdin.isatty()
    with command.report_errors():
        if database is not None and command.masked_address(database) != database:
            raise config.ConfigError(
                "--database: other users can see a password in the arguments; "
                f"set {init_answers.DATABASE_VARIABLE} instead"
            )
        default = server_command.file_to_write(os.environ)
        file = file or (init_answers.ask_path("Configuration file", default, is_folder=False) if asks else default)
        wanted = {"hostname": hostname, "database": database, "account": account, "domain": domain, "email": email}
        wanted |= {"https": https, "credits": credits}
        plan = _existing(file, wanted) if file.exists() else _new(file, data, wanted, asks=asks)
        with command.name_store_on_error(plan.settings):
            report = _carry_out(plan)
    output.show(report, as_json=as_json)


def _existing(file: Path, wanted: dict[str, str | None]) -> Plan:
    """The plan for an installation that exists: nothing that it has is changed, and nothing is asked."""
    settings = config.load(file, environment=os.environ)
    current = {"hostname": settings.delivery.hostname, "database": settings.database.url}
    current["https"] = init_answers.ACME if settings.acme.names else init_answers.PROXY
    current["credits"] = init_answers.ON if settings.credits.enabled else init_answers.OFF
    for name, value in current.items():
        if wanted[name] not in {None, value}:
            raise config.ConfigError(f"--{name}: {file} exists and has another value; change it there")
    init_answers.check_given(wanted)
    return Plan(file=file, text="", settings=settings, **{name: wanted[name] for name in DATABASE_ANSWERS})


def _new(file: Path, data: Path | None, wanted: dict[str, str | None], *, asks: bool) -> Plan:
    """The plan for a new installation, from flags and answers."""
    if asks:
        data = data or init_answers.ask_path("Data folder", DEFAULT_DATA, is_folder=True)
    answers = dict(init_answers.answers(wanted, data=(data or DEFAULT_DATA).absolute(), asks=asks))
    init_answers.check_database(answers["database"])
    file = file.absolute()
    text = settings_text(_chosen(answers, file), suggested=_suggested(answers, file))
    settings = _validated(text)
    for folder in filter(None, (file.parent, _database_folder(settings))):
        init_answers.check_writable(folder, advice="choose others with --config and --data")
    return Plan(file=file, text=text, settings=settings, **{name: answers[name] for name in DATABASE_ANSWERS})


def _chosen(answers: dict[str, str], file: Path) -> Tables:
    host, email = answers["hostname"], answers["email"]
    tables: dict[str, dict[str, object]] = {
        "database": {"url": answers["database"]},
        "http": {"base_url": f"https://{host}", "tls": False, "trusted_proxies": ["127.0.0.1", "::1"]},
        "security": {"installation_key_file": str(file.parent / "secret.key")},
        "delivery": {"hostname": host},
        "inbound": {"listen": f"{listener.any_host()}:25"},
        "operator": {"email": email, "from": f"postmaster@{answers['domain']}"},
        "credits": {"enabled": answers["credits"] == init_answers.ON},
    }
    if answers["https"] == init_answers.ACME:
        listen = {"listen": f"{listener.any_host()}:443", "redirect_listen": f"{listener.any_host()}:80"}
        tables["http"] = {**listen, "base_url": f"https://{host}"}
        tables["acme"] = {"names": [host], "email": email}
        tables["submission"] = _submission_addresses()
    return tables


def _suggested(answers: dict[str, str], file: Path) -> Tables:
    """What the file has as comments: a second factor, which nobody has yet, and listeners that need a certificate."""
    suggested: dict[str, dict[str, object]] = {"security": {"operator_second_factor": True}}
    if answers["https"] == init_answers.PROXY:
        folder = file.parent / "tls"
        suggested["submission"] = _submission_addresses()
        suggested["tls"] = {"certificate": str(folder / "fullchain.pem"), "key": str(folder / "privkey.pem")}
    return suggested


def _submission_addresses() -> dict[str, object]:
    return {"listen": f"{listener.any_host()}:587", "tls_listen": f"{listener.any_host()}:465"}


def _validated(text: str) -> config.Settings:
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as draft:
        draft.write(text)
        draft.flush()
        return config.load(Path(draft.name), environment=os.environ)


def _database_folder(settings: config.Settings) -> Path | None:
    folder = open_store.sqlite_folder(settings.database.url)
    return Path(folder) if folder else None


def _carry_out(plan: Plan) -> output.Report:
    done = Progress()
    folder = _database_folder(plan.settings)
    is_new = bool(plan.text) and not (folder and open_store.sqlite_path(plan.settings.database.url).exists())
    with _name_file_on_error():
        if plan.text:
            _create_key(plan, done)
    done.note(f"database {command.masked_address(plan.settings.database.url)}", is_new=is_new)
    asyncio.run(_fill(plan, done))
    with _name_file_on_error():
        if plan.text:
            data_folder.write_once(plan.file, plan.text)
    done.note(f"settings {plan.file}", is_new=bool(plan.text))
    if done.created:
        done.texts.append(NEXT_STEPS)
    lines = [f"{title}: {what}" for title, of in (("Created", done.created), ("Exists", done.existing)) for what in of]
    data = {"config": str(plan.file), "created": done.created, "existing": done.existing, **done.data}
    return output.Report(data=data, text="\n\n".join(["\n".join(lines), *done.texts]))


@contextlib.contextmanager
def _name_file_on_error() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise config.ConfigError(f"{problem.filename}: cannot be written: {problem.strerror}") from None


def _create_key(plan: Plan, done: Progress) -> None:
    """Create the folders and the key; an existing key is kept, because a database may depend on it."""
    for folder in filter(None, (plan.file.parent, _database_folder(plan.settings))):
        folder.mkdir(mode=data_folder.PRIVATE_FOLDER, parents=True, exist_ok=True)
    key = plan.file.parent / "secret.key"
    done.note(f"installation key {key}; keep a copy of it apart from the database", is_new=not key.exists())
    data_folder.write_once(key, secrets.token_urlsafe(data_folder.KEY_BYTES) + "\n")


async def _fill(plan: Plan, done: Progress) -> None:
    """Create the schema, account, domain and owner, as far as they are missing, and collect the DNS records."""
    async with composition.open_context(plan.settings) as ctx:
        account = await _account(ctx, plan.account, done)
        if account is not None:
            found = await _domains(ctx, account, plan.domain, done)
            if plan.email:
                await _owner(ctx, account, plan.email, done)
            _show_host(plan.settings, done)
            shown = [await _domain_view(ctx, domain) for domain in found]
            done.data["domains"] = shown
            done.texts += map(domains.text_of, shown)
        else:
            _show_host(plan.settings, done)


async def _account(ctx: services_context.Context, name: str | None, done: Progress) -> accounts.Account | None:
    """The account of this name, created if missing; without a name the only one, if there is only one."""
    if name is None:
        found = await services_accounts.page(ctx, "", SEVERAL)
        account = found[0] if len(found) == 1 else None
        is_new = False
    else:
        known = await services_accounts.by_name(ctx, name)
        account, is_new = known or await services_accounts.create(ctx, name), known is None
    if account is not None:
        done.note(f"account {account.name!r} ({account.id})", is_new=is_new)
        done.data["account"] = account.id
    return account


async def _domains(
    ctx: services_context.Context, account: accounts.Account, name: str | None, done: Progress
) -> list[stored_domains.Domain]:
    """The domain of this name, created if missing; without a name all domains of the account."""
    found = await services_domains.of_account(ctx, account.id)
    if name is None:
        return found
    normal = address.parse_domain(name)
    known = [domain for domain in found if domain.name == normal]
    done.note(f"domain {normal}", is_new=not known)
    return known or [await services_domains.add(ctx, account.id, name, verified=False)]


async def _domain_view(ctx: services_context.Context, domain: stored_domains.Domain) -> dict[str, Any]:
    await domain_keys.keys(ctx, domain)
    shown = await domain_views.details(ctx, domain, for_operator=True)
    return {"id": domain.id, "account_id": domain.account_id, **msgspec.to_builtins(shown)}


async def _owner(ctx: services_context.Context, account: accounts.Account, email: str, done: Progress) -> None:
    """The owner's link; an existing user gets none, because a new link would end the one they have."""
    user = await account_users.by_email(ctx, email, account_id=account.id)
    if user is not None:
        done.note(f"user {user.email}; 'postroad user link' shows a link for a new password", is_new=False)
        return
    is_first = not await account_users.operators(ctx)
    invite = account_users.invite_operator if is_first else account_users.invite
    invited = await invite(ctx, account.id, email=email, role=callers.Role.OWNER)
    done.note(f"owner{' and operator' if is_first else ''} {invited.user.email}", is_new=True)
    text = f"Once the service is running, open this link to choose a password for {invited.user.email}:"
    done.data["link"] = link = password_links.url(ctx.settings, invited.link_token)
    done.texts.append(users.link_text(text, link, invited.expires_at))


def _show_host(settings: config.Settings, done: Progress) -> None:
    delivery = settings.delivery
    addresses = [source.address for source in settings.sources] or network_hostname.outbound_addresses()
    shown = host_records.host_records(delivery.hostname, addresses, return_path_domain=delivery.return_path_domain)
    lines = [
        f"DNS records of this host, {delivery.hostname}. Set the PTR records at the provider of the address.",
        *(f"    {record.zone_line}" for record in shown),
    ]
    if any(host_records.UNKNOWN_ADDRESS in record.zone_line for record in shown):
        lines.append(
            f"Replace {host_records.UNKNOWN_ADDRESS} with the public address of this host, which is not known here; "
            "the name of a PTR record has its numbers in reverse order."
        )
    done.data["host_records"] = [asdict(record) for record in shown]
    done.texts.append("\n".join(lines))
