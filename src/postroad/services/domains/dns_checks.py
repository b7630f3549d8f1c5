"""DNS checks of sender domains: each record is queried, and its result stored and applied; due domains again."""

import asyncio
import dataclasses
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import context, errors
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records
from postroad.model.events import events
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services import usage_limits
from postroad.services.domains import domain_registry as services_domains
from postroad.services.domains import key_rotation
from postroad.storage.engine import store
from postroad.storage.mail import domains
from postroad.storage.people import accounts, credentials
from postroad.telemetry import logs

MIN_CHECK_INTERVAL_SECONDS: Final = 10
CHECKS: Final = usage_limits.WorkLimit("domain checks", per_account=2, per_process=20, retry_seconds=5)


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """A record, its expected value and the result of the last check."""

    record: domain_records.Record
    value: str | None
    state: domain_records.RecordState
    detail: str
    checked_at: int | None
    found: str = ""  # the part of `detail` that the check found, without what follows from it for an old key
    needed_until: int | None = None  # of an old key that has signed mail in flight

    @property
    def required(self) -> bool:
        return self.record.purpose in domain_records.REQUIRED

    @property
    def optional(self) -> bool:
        """Whether nothing is amiss without it."""
        return self.record.purpose in domain_records.OPTIONAL


class CheckResult(msgspec.Struct, frozen=True):
    domain: domains.Domain
    change: domain_records.VerificationChange


async def records(ctx: context.Context, domain: domains.Domain) -> list[RecordStatus]:
    """The records of a domain with the results of the last check; without those of keys that it has not got yet."""
    service = await ctx.dns.service()
    wanted = _wanted(domain, service, await domain_keys.stored_records(ctx, domain))
    async with ctx.store.reading() as tx:
        checks = await domains.checks(tx, domain.account_id, domain.id)
    return [_record_status(record, checks.get(record.purpose), service, ctx.clock()) for record in wanted]


def for_operator(shown: RecordStatus) -> RecordStatus:
    """The record for a reader who publishes what is in the zone `domains.key_zone`."""
    if domain_records.Finding(shown.state, shown.found) != domain_records.alias_without_key():
        return shown
    advice = "alias found, but its key is not in your zone; run 'postroad domain records' and publish its output"
    return dataclasses.replace(shown, detail=shown.detail.replace(shown.found, advice))


async def check_now(ctx: context.Context, account_id: str, domain_id: str) -> CheckResult:
    """Check a domain while the caller waits; refused when it was checked a moment ago, on any host.

    Removing a domain deletes its check time; this process's memory by name outlives that.
    """
    domain = await services_domains.find(ctx, account_id, domain_id)
    if ctx.actor.kind is callers.ActorKind.OPERATOR:  # who has the host may ask as often as they like
        return await check(ctx, domain)
    with usage_limits.acquire(ctx, CHECKS, account_id):
        now, name = ctx.clock(), (account_id, domain.name)
        asked_at = ctx.dns.check_requested_at.get(name)
        # A time in the future means that the clock was set back.
        if asked_at is not None and now - MIN_CHECK_INTERVAL_SECONDS * times.SECOND < asked_at <= now:
            raise _too_soon(asked_at, now)
        async with ctx.store.transaction() as tx:
            asked_before = now - MIN_CHECK_INTERVAL_SECONDS * times.SECOND
            if not await domains.mark_check_requested(tx, account_id, domain_id, now=now, not_since=asked_before):
                raise _too_soon(await domains.check_requested_at(tx, account_id, domain_id) or now, now)
        ctx.dns.check_requested_at.put(name, now)
        return await check(ctx, domain)


def _too_soon(asked_at: int, now: int) -> errors.RateLimited:
    left = MIN_CHECK_INTERVAL_SECONDS + (asked_at - now) / times.SECOND
    return errors.RateLimited(
        f"the domain was checked a moment ago; wait {MIN_CHECK_INTERVAL_SECONDS} seconds between checks",
        retry_after=max(1, math.ceil(left)),
    )


async def check(ctx: context.Context, domain: domains.Domain) -> CheckResult:
    """Query every record of a domain, which has a key then. Raises NotFound when it was removed meanwhile."""
    service = await ctx.dns.service()
    wanted = _wanted(domain, service, await domain_keys.records(ctx, domain))
    findings = await asyncio.gather(
        *(ctx.dns.check(record, domain=domain.name, account_id=domain.account_id) for record in wanted)
    )
    by_record = {_question(record): finding for record, finding in zip(wanted, findings, strict=True)}
    for record, finding in zip(wanted, findings, strict=True):
        ctx.metrics.domain_checks.add(record.purpose, finding.state)
    states = {record.selector: by_record[_question(record)].state for record in wanted if record.selector}
    if await key_rotation.apply(ctx, domain, states):
        # With other purposes: the next key is the current one.
        wanted = _wanted(domain, service, await domain_keys.records(ctx, domain))
    found = {record.purpose: by_record[_question(record)] for record in wanted if _question(record) in by_record}
    rotating_since = await key_rotation.rotating_since(ctx, domain)
    domain = await services_domains.find(ctx, domain.account_id, domain.id)
    (return_path,) = (record for record in wanted if record.purpose is domain_records.RecordPurpose.RETURN_PATH)
    usable = domain_records.usable_return_path(
        domain.return_path_domain, return_path, found[domain_records.RecordPurpose.RETURN_PATH]
    )
    return await _conclude(ctx, domain, found, return_path_domain=usable, rotating_since=rotating_since)


def _question(record: domain_records.Record) -> tuple[str, str, str]:
    """What a check asks DNS for. The key behind an alias that is now reserved for the next key is another question."""
    return record.name, record.type, record.text


async def _conclude(
    ctx: context.Context,
    domain: domains.Domain,
    found: dict[domain_records.RecordPurpose, domain_records.Finding],
    *,
    return_path_domain: str,
    rotating_since: int | None,
) -> CheckResult:
    now = ctx.clock()
    change = domain_records.verification_change(
        found[domain_records.RecordPurpose.DKIM].state,
        verified=domain.verified_at is not None,
        by_dns=domain.verified_by == domains.DNS,
        failing_since=domain.failing_since,
        now=now,
    )
    try:
        domain, change = await _apply_change(ctx, domain, change, now)
    except errors.Conflict:
        found[domain_records.RecordPurpose.DKIM] = domain_records.verified_by_another_account()
        change = domain_records.VerificationChange.NONE
    check_at = domain_records.next_check(
        verified=domain.verified_at is not None,
        failing_since=domain.failing_since,
        created_at=domain.created_at,
        check_hours=ctx.settings.domains.check_hours,
        now=now,
        random_fraction=random.random(),  # noqa: S311 - jitter
        rotating_since=rotating_since,
    )
    place = (domain.account_id, domain.id)
    after = dataclasses.replace(domain, check_at=check_at, return_path_domain=return_path_domain)
    async with ctx.store.transaction() as tx:
        if after.return_path_domain != domain.return_path_domain:
            await credentials.bump_access_version(tx)  # processes remember the domain
        if change is domain_records.VerificationChange.FAILING:
            await _announce_failing(ctx, tx, domain, now)
        if await domains.record_check(
            tx,
            *place,
            check_at=after.check_at,
            failing_since=after.failing_since,
            return_path_domain=after.return_path_domain,
        ):
            await domains.remove_checks(tx, *place)  # a key may have another purpose than at the last check
            await domains.put_checks(
                tx,
                [
                    domains.Check(*place, purpose, finding.state, finding.detail, "\n".join(finding.found), now)
                    for purpose, finding in found.items()
                ],
            )
    if after.return_path_domain != domain.return_path_domain:
        ctx.access_cache.invalidate()
    return CheckResult(after, change)


async def _announce_failing(ctx: context.Context, tx: store.Transaction, domain: domains.Domain, now: int) -> None:
    """Write the event, unless another check has found it failing before."""
    await accounts.lock(tx, [domain.account_id])
    before = await domains.by_id(tx, domain.account_id, domain.id)
    if before is None or before.failing_since is not None:
        return
    data = events.FailingDomainData(
        domain_id=domain.id,
        domain=domain.name,
        failing_since=times.to_wire(now),
        verified_until=times.to_wire(now + domain_records.GRACE_PERIOD),
    )
    kind = events.EventType.DOMAIN_FAILING
    await ctx.outbox.write_account(tx, [events.AccountEvent(domain.account_id, kind, now, data)])


async def _apply_change(
    ctx: context.Context, domain: domains.Domain, change: domain_records.VerificationChange, now: int
) -> tuple[domains.Domain, domain_records.VerificationChange]:
    """Apply the result to the verification; returns the updated domain."""
    match change:
        case domain_records.VerificationChange.VERIFIED:
            domain = await services_domains.verify(ctx, domain.account_id, domain.id, by=domains.DNS)
        case domain_records.VerificationChange.FAILING:
            domain = dataclasses.replace(domain, failing_since=now)
        case domain_records.VerificationChange.RECOVERED:
            domain = dataclasses.replace(domain, failing_since=None)
        case domain_records.VerificationChange.LOST:
            before = now - domain_records.GRACE_PERIOD
            if await services_domains.unverify(ctx, domain.account_id, domain.id, failing_before=before):
                return dataclasses.replace(domain, verified_at=None, verified_by=None), change
            return await services_domains.find(
                ctx, domain.account_id, domain.id
            ), domain_records.VerificationChange.NONE
    return domain, change


def _wanted(
    domain: domains.Domain, service: domain_records.Service, keys: Sequence[domain_records.Record]
) -> Sequence[domain_records.Record]:
    return domain_records.records(domain.name, keys=keys, service=service)


def _record_status(
    record: domain_records.Record, check: domains.Check | None, service: domain_records.Service, now: int
) -> RecordStatus:
    needed_until = record.needed_until if (record.needed_until or 0) > now else None
    if check is None:
        state, text = domain_records.RecordState.PENDING, "not checked yet"
        return RecordStatus(record, record.value, state, text, None, found=text, needed_until=needed_until)
    found = check.detail
    if record.needed_until is not None:
        detail = domain_records.describe_old_key(record, check.detail, needed_until=needed_until)
        check = msgspec.structs.replace(check, detail=detail)
    finding = domain_records.Finding(
        domain_records.RecordState(check.state), check.detail, tuple(check.found.split("\n")) if check.found else ()
    )
    value = domain_records.recommended_value(record, finding, service)
    return RecordStatus(
        record,
        value,
        finding.state,
        finding.detail,
        check.checked_at,
        found=found if needed_until is not None else finding.detail,
        needed_until=needed_until,
    )


# The monitor of sender domains: due domains are checked again, a bounded number at a time.
#
# A domain is claimed by moving its next check ahead, so hosts share the work and one that dies loses none. A round may
# be cancelled at any moment. Only improvements take effect at once: see `model/domains/domain_records.py`.

# Each has five lookups or a few more, and waits for name servers, not for this host. Callers have lookups of their own:
# see `domain_dns.py`.
BATCH_SIZE: Final = 10
# For one round; the rest is due in the next one. A batch that has begun takes seconds.
ROUND_SECONDS: Final = 30.0
# Far longer than a check takes.
CLAIM_DURATION: Final = 10 * 60 * times.SECOND
EVENTS: Final = {
    domain_records.VerificationChange.VERIFIED: "domain_verified",
    domain_records.VerificationChange.FAILING: "domain_failing",
    domain_records.VerificationChange.RECOVERED: "domain_recovered",
    domain_records.VerificationChange.LOST: "domain_unverified",
}


async def check_due(ctx: context.Context, *, log: logs.Logger) -> int:
    """Check due domains until none is left or the round's time is over; returns how many were checked."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + ROUND_SECONDS
    total = 0
    while loop.time() < ends_at:
        now = ctx.clock()
        async with ctx.store.transaction() as tx:
            claimed = await domains.claim_due(tx, now=now, until=now + CLAIM_DURATION, limit=BATCH_SIZE)
        await asyncio.gather(*(_check_claimed(ctx, domain, log) for domain in claimed))
        total += len(claimed)
        if len(claimed) < BATCH_SIZE:
            break
    return total


async def _check_claimed(ctx: context.Context, domain: domains.Domain, log: logs.Logger) -> None:
    """Check one domain. A failure does not affect the others, and the domain is due again when the claim expires."""
    try:
        checked = await check(ctx, domain)
        is_rotated = await key_rotation.rotate_by_age(ctx, domain)
    except errors.NotFound:
        return  # removed meanwhile
    except errors.PostroadError as trouble:
        log.warning("domain_check_failed", domain=domain.name, account_id=domain.account_id, error=trouble.message)
        return
    except Exception:
        log.exception("domain_check_failed", domain=domain.name, account_id=domain.account_id)
        return
    if checked.change in EVENTS:
        log.info(EVENTS[checked.change], domain=domain.name, account_id=domain.account_id, domain_id=domain.id)
    if is_rotated:
        log.info("domain_key_created", domain=domain.name, account_id=domain.account_id, domain_id=domain.id)
