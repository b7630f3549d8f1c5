"""The installation's data: database, disk, key and partitions; second factors of its operators; its single sign-on."""

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from postroad import config, extensions
from postroad.keys import installation_keys, key_check
from postroad.mail.accept import queue_limit
from postroad.model.events import event_formats as formats
from postroad.model.units import identifiers, times
from postroad.network.http import guarded_client
from postroad.services.operations import partitions as maintained
from postroad.services.operations.checks import findings
from postroad.services.people import sso_connections, sso_providers
from postroad.storage.engine import open_store, store
from postroad.storage.mail import webhooks
from postroad.storage.operations import partitions, space
from postroad.storage.people import accounts, second_factors

MEBIBYTE: Final = 1024 * 1024
# Room for the log of SQLite and for some thousand messages, until somebody comes.
ERROR_BYTES: Final = 512 * MEBIBYTE
WARNING_SHARE: Final = 0.1
# The operator hears of mail that will be refused while so many times the minimum of free space is left.
NEAR_FLOORS: Final = 4
ERROR_DAYS: Final = 3.0
WARNING_DAYS: Final = 14.0
# A week has busy and quiet days; less than a day tells nothing about the next.
SAMPLED: Final = 7 * times.DAY
# After a start, maintenance has begun partitions by then.
SETTLED: Final = 2 * times.HOUR
PARTITION_ADVICE: Final = (
    "look for partitions_deferred or partitions_failed in the log of the maintenance role, for long transactions, "
    "and for much held or scheduled mail"
)


async def database(given: findings.Subject) -> Sequence[findings.Finding]:
    return [given.database]


async def key(given: findings.Subject) -> Sequence[findings.Finding]:
    try:
        keys = installation_keys.Keys.derive(config.installation_key(given.settings.security))
    except config.ConfigError as problem:
        return [findings.error(str(problem))]
    if given.store is None:
        return [findings.skipped("the database cannot be used")]
    async with given.store.reading() as tx:
        state = await key_check.state(tx, keys)
    if state is key_check.KeyState.WRONG:
        return [
            findings.error(
                "the installation key does not match this database",
                "restore the key that was used before, in security.installation_key or security.installation_key_file",
            )
        ]
    return [
        findings.ok(
            "the installation key matches the database"
            if state is key_check.KeyState.FITS
            else "the installation key is strong; the database does not depend on a key yet"
        )
    ]


async def mail_partitions(given: findings.Subject) -> Sequence[findings.Finding]:
    """New partitions begin in time, and old ones are dropped."""
    if given.store is None:
        return [findings.skipped("the database cannot be used")]
    groups = [maintained.content(given.settings), maintained.mail(given.settings)]
    async with given.store.reading() as tx:
        found = [(group, state) for group in groups if (state := await partitions.read(tx, group.tables))]
        if not found:
            return [findings.ok("SQLite has no partitions: expired mail is deleted row by row")]
        is_permitted = await partitions.is_permitted(tx)
    if not is_permitted:
        return [
            findings.warning(
                "the role of database.url may not begin and drop partitions: expired mail is deleted row by row",
                "run deploy/postgresql-roles.sql again, or grant your own role the functions that it names",
            )
        ]
    begun = [process.started_at for process in given.running if "maintenance" in process.roles]
    is_new = not begun or min(begun) > given.clock() - SETTLED
    return [
        partition for group, read in found for partition in _partitions(group, read, is_new=is_new, now=given.clock())
    ] or [findings.ok("partitions of mail begin and are dropped in time")]


def _partitions(
    group: maintained.Group, read: partitions.Partitions, *, is_new: bool, now: int
) -> Sequence[findings.Finding]:
    table = group.tables[0]
    ends = [identifiers.time_of(bound, identifiers.MESSAGE) for bound in read.bounds]
    late = [end for end in ends if end < now - (group.days + maintained.DROP_DAYS) * times.DAY]
    told = []
    if not ends and not is_new:
        told.append(f"{table} has only its first partition: expired mail is deleted row by row")
    if ends and ends[-1] < now:
        told.append(f"no partition of {table} was begun after {_day(ends[-1])}: the newest takes all mail, and grows")
    if late:
        told.append(f"the partition of {table} until {_day(late[0])} has expired, and was not dropped")
    return [findings.warning(problem, PARTITION_ADVICE) for problem in told]


def _day(time: int) -> str:
    return times.to_wire(time)[:10]


def folders(settings: config.Settings) -> Sequence[str]:
    """The folders that grow on this host: of the SQLite database and of messages that are arriving."""
    database_folder = open_store.sqlite_folder(settings.database.url)
    spool = database_folder or tempfile.gettempdir()
    return list(dict.fromkeys(str(Path(folder).absolute()) for folder in (database_folder, spool) if folder))


async def disk(given: findings.Subject) -> Sequence[findings.Finding]:
    """There is free space, for today and at the current growth."""
    return [await _folder(given, folder) for folder in folders(given.settings)]


async def _folder(given: findings.Subject, folder: str) -> findings.Finding:
    try:
        usage = await asyncio.to_thread(shutil.disk_usage, folder)
    except OSError as problem:
        return findings.error(
            f"{folder} cannot be used: {problem.strerror}", "create it, or choose another in the settings"
        )
    days = await _days_until_full(given, folder, usage.free)
    shown = f"{folder} has {usage.free // MEBIBYTE:,} of {usage.total // MEBIBYTE:,} MiB free"
    if days is not None:
        ends = "1 day" if round(days) == 1 else f"{days:.0f} days"
        shown += f" and will be full in {ends} at the growth rate of the last week"
    advice = (
        "enlarge the disk, cancel queued mail, release held mail, or shorten retention.body_days and "
        "retention.message_days"
    )
    known = await _near_floor(given, folder)
    if known is not None:
        shown += f"; {_refusal(known, given.settings.limits.min_free_megabytes)} (limits.min_free_megabytes)"
    is_refused_soon = known is not None and usage.free < 2 * known.floor
    if usage.free < ERROR_BYTES or is_refused_soon or (days is not None and days < ERROR_DAYS):
        return findings.error(shown, advice)
    if known is not None or usage.free < WARNING_SHARE * usage.total or (days is not None and days < WARNING_DAYS):
        return findings.warning(shown, advice)
    return findings.ok(shown)


def _refusal(known: queue_limit.Disk, megabytes: int) -> str:
    """When all mail is refused, while so many megabytes are set as the minimum of free space."""
    floor = f"{known.floor // MEBIBYTE:,} MiB"
    if known.floor < megabytes * MEBIBYTE:
        floor += f" (a tenth of the disk; {megabytes:,} are set)"
    if known.headroom <= 0:
        return f"all mail is refused now, because less than {floor} are free"
    return f"below {floor}, all mail is refused"


async def _near_floor(given: findings.Subject, folder: str) -> queue_limit.Disk | None:
    """The disk on which mail will be refused, or is; None while that is far away, or never happens."""
    if given.store is None or folder != open_store.sqlite_folder(given.settings.database.url):
        return None
    async with given.store.reading() as tx:
        found = await queue_limit.read_disk(tx, given.settings)
    return None if found is None or found.free > NEAR_FLOORS * found.floor else found


async def _days_until_full(given: findings.Subject, folder: str, free: int) -> float | None:
    """At the growth of the last week; None while it is not known, or 0."""
    if given.store is None:
        return None
    daily = await daily_growth(given.store, given.short_name, folder, free=free, now=given.clock())
    return free / daily if daily is not None and daily > 0 else None


async def daily_growth(known: store.Store, host: str, folder: str, *, free: int, now: int) -> float | None:
    """The bytes that a day fills, between the oldest measurement of the last week and now; None while not known."""
    async with known.reading() as tx:
        oldest = await space.oldest_sample(tx, host, folder, since=now - SAMPLED)
    if oldest is None or now - oldest[0] < times.DAY:
        return None
    return (oldest[1] - free) / (now - oldest[0]) * times.DAY


async def sample(given: findings.Subject) -> None:
    if given.store is None:
        return
    now = given.clock()
    measured = {folder: await asyncio.to_thread(shutil.disk_usage, folder) for folder in folders(given.settings)}
    async with given.store.transaction() as tx:
        for folder, usage in measured.items():
            await space.add_sample(tx, given.short_name, folder, now=now, free_bytes=usage.free)
        await space.sweep_samples(tx, before=now - SAMPLED)


async def second_factors_of_operators(given: findings.Subject) -> Sequence[findings.Finding]:
    if given.settings.security.operator_second_factor:
        return [findings.ok("a second factor is required for operators")]
    if given.store is None:
        return [findings.skipped("the database cannot be used")]
    async with given.store.reading() as tx:
        without = await second_factors.operators_without(tx)
    if not without:
        return [findings.ok("no operator can log in with a password alone")]
    return [
        findings.warning(
            f"operators who can log in with a password alone: {without}",
            "set security.operator_second_factor = true; they must then set one up when they next log in",
        )
    ]


async def event_formats(given: findings.Subject) -> Sequence[findings.Finding]:
    """Whether the events of all webhooks can be written."""
    if given.store is None:
        return [findings.skipped("the database cannot be used")]
    async with given.store.reading() as tx:
        used = await webhooks.formats(tx)
    known = {part.name for part in extensions.parts("event_formats", formats.EventFormat)} | {formats.OWN}
    missing = [
        findings.error(
            f"webhooks have the event format {name!r}, which no installed extension has, so their events wait",
            f"{extensions.how_to_install(f'format {name}')}, on every host, or remove the webhooks",
        )
        for name in used
        if name not in known
    ]
    return missing or [findings.ok("every webhook has an event format that is installed")]


async def single_sign_on(given: findings.Subject) -> Sequence[findings.Finding]:
    if not given.settings.sso.issuer:
        return [findings.skipped("sso.issuer is empty")]
    found = await _provider(given.settings)
    if found is None and not await _has_account(given):
        found = findings.error("sso.account names an account that does not exist", "set the id of an account")
    return [found or findings.ok(f"{given.settings.sso.issuer} can be used")]


async def _provider(settings: config.Settings) -> findings.Finding | None:
    guarded = guarded_client.WebhookClient(settings)
    asked = sso_providers.Providers(settings, guarded)
    try:
        await asked.check(sso_connections.installation(settings))
    except (sso_providers.ProviderError, config.ConfigError) as problem:
        return findings.error(f"single sign-on does not work: {problem}", "check [sso] and that the provider runs")
    finally:
        await asked.close()
        await guarded.close()
    return None


async def _has_account(given: findings.Subject) -> bool:
    if given.store is None or not given.settings.sso.account:
        return True
    async with given.store.reading() as tx:
        account = await accounts.by_id(tx, given.settings.sso.account)
    return account is not None and account.closed_at is None
