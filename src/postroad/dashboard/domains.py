"""`/domains`: the sender domains of the account, what their DNS should say, and how far their warm-up has come."""

import datetime as dt
from dataclasses import dataclass
from typing import Final

from postroad.dashboard import forms, lists, requests
from postroad.dashboard import site as sites
from postroad.model import domain_records, domain_verification, identifiers, times, warmup
from postroad.services import context
from postroad.services.dkim import domain_keys
from postroad.services.domains import checks as domain_checks
from postroad.services.domains import registry as domains
from postroad.services.domains import warmup_status
from postroad.storage import domains as stored
from postroad.web import routing


@dataclass(frozen=True, slots=True)
class RecordGuide:
    """What a record is for, in plain words, and what happens without it (docs/domains.md)."""

    title: str
    what_for: str
    without: str


RECORD_GUIDES: Final = {
    domain_records.RecordPurpose.DKIM: RecordGuide(
        "DKIM",
        "Receivers check the signature of your mail by it. It proves that the domain is yours.",
        "The domain is not verified, and its signatures count for nothing.",
    ),
    domain_records.RecordPurpose.SPF: RecordGuide(
        "SPF",
        "Tells receivers that this service may send for the domain.",
        "Much of your mail ends as spam, or is refused.",
    ),
    domain_records.RecordPurpose.RETURN_PATH: RecordGuide(
        "Return path",
        "Brings bounces that come late back to this service.",
        "Mail is delivered; late bounces are not noticed.",
    ),
    domain_records.RecordPurpose.DMARC: RecordGuide(
        "DMARC",
        "Says what receivers shall do with mail that only pretends to be yours.",
        "Large receivers trust you less.",
    ),
}


class NewDomain(forms.Form, frozen=True, kw_only=True):
    """A domain to register."""

    name: str


@dataclass(frozen=True, slots=True)
class Row:
    """A domain in the list. `records` is empty before its key was made: nobody has asked DNS yet."""

    domain: stored.Domain
    records: list[domain_checks.RecordStatus]
    warmth: warmup.View | None

    @property
    def standing(self) -> str:
        """How it stands, in a word."""
        return standing(self.domain)


def standing(domain: stored.Domain) -> str:
    """Whether a domain is proven, in a word."""
    if domain.verified_at is None:
        return "unverified"
    return "verified" if domain.failing_since is None else "failing"


def right_of(records: list[domain_checks.RecordStatus]) -> tuple[int, int]:
    """How many records are as they should be, and of how many; those in the operator's DNS are not the account's."""
    own = [shown for shown in records if not shown.record.managed]
    return sum(shown.state is domain_records.RecordState.OK for shown in own), len(own)


async def index(page_request: requests.PageRequest) -> routing.Response:
    """The list, and the form that begins with a domain."""
    listed = await lists.page(page_request, domains.of_account, prefix=identifiers.DOMAIN)
    # Only of those that have a key: making fifty of them would take a quarter of a minute.
    keyed = await domain_keys.existing_records(page_request.ctx, listed.rows)
    rows = [
        Row(
            domain,
            await domain_checks.records(page_request.ctx, domain) if domain.id in keyed else [],
            await warmup_status.view(page_request.ctx, domain),
        )
        for domain in listed.rows
    ]
    return page_request.page("domains.html", rows=rows, right_of=right_of, listed=listed)


async def create(page_request: requests.PageRequest) -> routing.Response:
    """Register a domain; its page says what to do next."""
    form: NewDomain = page_request.form
    made = await domains.add(page_request.ctx, page_request.account_id, form.name, verified=False)
    return page_request.redirect(
        f"/domains/{made.id}", notice=f"{made.name} is registered. Now add its records to DNS."
    )


async def show(page_request: requests.PageRequest) -> routing.Response:
    """One domain with all that DNS should say of it."""
    domain = await domains.find(page_request.ctx, page_request.account_id, page_request.request.path["id"])
    records = await domain_checks.records(page_request.ctx, domain)
    checked_times = [shown.checked_at for shown in records if shown.checked_at is not None]
    calendar = await warmup_status.calendar(page_request.ctx, domain)
    return page_request.page(
        "domain.html",
        domain=domain,
        standing=standing(domain),
        records=records,
        meanings=RECORD_GUIDES,
        right=right_of(records),
        asked_at=max(checked_times, default=None),
        is_watched=page_request.ctx.settings.domains.check_hours > 0,
        patience_hours=domain_verification.GRACE_PERIOD // times.HOUR,
        calendar=calendar,
        today=next((day for day in calendar or () if day.state is warmup.Step.TODAY), None),
        date_of=date_of,
        is_warmed_here=page_request.ctx.settings.warmup.enabled,
    )


async def check(page_request: requests.PageRequest) -> routing.Response:
    """Ask DNS now."""
    checked = await domain_checks.check_now(page_request.ctx, page_request.account_id, page_request.request.path["id"])
    name = checked.domain.name
    match checked.change:
        case domain_verification.Change.VERIFIED:
            told, kind = f"{name} is verified: you can send from it.", "good"
        case domain_verification.Change.LOST:
            told, kind = f"{name} is not verified any more: its DKIM record is gone from DNS.", "bad"
        case _:
            right, all_of_them = right_of(await domain_checks.records(page_request.ctx, checked.domain))
            told = f"DNS was asked: {right} of {all_of_them} records are as they should be."
            kind = "good" if right == all_of_them else "warn"
    return page_request.redirect(f"/domains/{checked.domain.id}", notice=told, kind=kind)


async def remove(page_request: requests.PageRequest) -> routing.Response:
    """Forget a domain."""
    domain = await domains.find(page_request.ctx, page_request.account_id, page_request.request.path["id"])
    await domains.remove(page_request.ctx, page_request.account_id, domain.id)
    return page_request.redirect("/domains", notice=f"{domain.name} is removed. Nothing can be sent from it any more.")


def date_of(day: int) -> str:
    """A day since 1970 as people write it."""
    moment = dt.datetime.fromtimestamp(day * times.DAY // times.SECOND, dt.UTC)
    return f"{moment:%b} {moment.day}"


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The pages and what can be done on them."""
    return (
        requests.get(site, "/domains", index, query=lists.Query),
        requests.post(site, "/domains", create, form=NewDomain),
        requests.get(site, "/domains/{id}", show),
        requests.post(site, "/domains/{id}/check", check),
        requests.post(site, "/domains/{id}/remove", remove),
    )
