"""`/domains`: the sender domains of the account, their DNS records and their warm-up."""

import datetime as dt
from typing import Final

import msgspec

from postroad.dashboard.framework import forms, lists, requests
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records, warmup
from postroad.model.reports import dmarc_readiness
from postroad.model.units import identifiers, times
from postroad.protocol.dns import mta_sts, tag_lists
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.domains import key_rotation, link_hosts, received_reports
from postroad.storage.mail import domains as stored
from postroad.web import routing


class RecordGuide(msgspec.Struct, frozen=True):
    """The name of a record for people, and why it is needed (docs/domains.md)."""

    title: str
    why: str


# In a table of reports.
MAX_SHOWN: Final = 50
RECORD_GUIDES: Final = {
    domain_records.RecordPurpose.DKIM: RecordGuide(
        "DKIM", "Signs your mail and proves that the domain is yours. Without it, you cannot send."
    ),
    domain_records.RecordPurpose.SPF: RecordGuide(
        "SPF", "Lets this service send for you. Without it, much of your mail goes to spam."
    ),
    domain_records.RecordPurpose.RETURN_PATH: RecordGuide(
        "Return path",
        "Brings asynchronous bounces back here. It is a subdomain, so the mailboxes of your domain stay as they are.",
    ),
    domain_records.RecordPurpose.DMARC: RecordGuide(
        "DMARC",
        "Says what to do with forged mail, and has receivers report here who sends in your name. Without it, large "
        "mailbox providers trust your mail less.",
    ),
    domain_records.RecordPurpose.DKIM_NEXT: RecordGuide(
        "DKIM, next key", "Signs as soon as this record is found. Keep the current record as well."
    ),
    domain_records.RecordPurpose.DKIM_ED25519: RecordGuide(
        "DKIM with Ed25519", "Adds a second, shorter signature for servers that support it. You can leave it out."
    ),
    domain_records.RecordPurpose.DKIM_ED25519_NEXT: RecordGuide(
        "DKIM with Ed25519, next key", "The second signature of the new key. You can leave it out."
    ),
    domain_records.RecordPurpose.DKIM_OLD: RecordGuide(
        "DKIM, old key", "Verifies mail that was signed before the key was replaced and is still on its way."
    ),
    domain_records.RecordPurpose.DKIM_ED25519_OLD: RecordGuide(
        "DKIM with Ed25519, old key", "Verifies the second signature of mail that is still on its way."
    ),
}


class NewDomain(forms.Form, frozen=True, kw_only=True):
    name: str


class LinkHost(forms.Form, frozen=True, kw_only=True):
    link_host: str | None = None


class ReportedNetwork(forms.Form, frozen=True, kw_only=True):
    network: str


class Bar(msgspec.Struct, frozen=True):
    """A day of the reports; heights are in percent of the day with the most messages."""

    date: str
    messages: int
    failed: int
    height: float
    failed_height: float


class Row(msgspec.Struct, frozen=True):
    """A domain in the list. `records` is empty until its DKIM key exists: DNS has not been checked."""

    domain: stored.Domain
    records: list[domain_checks.RecordStatus]
    warmup_status: warmup.View | None

    @property
    def verification_status(self) -> str:
        return verification_status(self.domain)


def verification_status(domain: stored.Domain) -> str:
    if domain.verified_at is None:
        return "unverified"
    return "verified" if domain.failing_since is None else "failing"


def count_correct(records: list[domain_checks.RecordStatus]) -> tuple[int, int]:
    """How many of the account's own records are correct, and of how many; managed and optional ones do not count."""
    own = [shown for shown in records if not shown.record.managed and not shown.optional]
    return sum(shown.state is domain_records.RecordState.OK for shown in own), len(own)


def is_rotating(records: list[domain_checks.RecordStatus]) -> bool:
    """Whether a new key is awaited, or the old one is still needed."""
    return any(
        (shown.record.purpose is domain_records.RecordPurpose.DKIM_NEXT and shown.record.selector)
        or shown.needed_until is not None
        for shown in records
    )


async def index(request: requests.PageRequest) -> routing.Response:
    listed = await lists.page(request, domains.of_account, prefix=identifiers.DOMAIN)
    # Only domains that have a key: generating fifty would take 15 seconds.
    keyed = await domain_keys.existing_records(request.ctx, listed.rows)
    rows = [
        Row(
            domain,
            await domain_checks.records(request.ctx, domain) if domain.id in keyed else [],
            await domains.warmup_view(request.ctx, domain),
        )
        for domain in listed.rows
    ]
    return request.page("domains.html", rows=rows, count_correct=count_correct, listed=listed)


async def create(request: requests.PageRequest) -> routing.Response:
    form: NewDomain = request.form
    made = await domains.add(request.ctx, request.account_id, form.name, verified=False)
    await domain_keys.keys(request.ctx, made)
    return request.redirect(f"/domains/{made.id}", notice=f"{made.name} added. Now add its DNS records.")


async def show(request: requests.PageRequest) -> routing.Response:
    domain = await domains.find(request.ctx, request.account_id, request.path["id"])
    records = await domain_checks.records(request.ctx, domain)
    checked_times = [shown.checked_at for shown in records if shown.checked_at is not None]
    calendar = await domains.warmup_calendar(request.ctx, domain)
    return request.page(
        "domain.html",
        domain=domain,
        verification_status=verification_status(domain),
        can_send_unverified=not request.ctx.settings.domains.require_verified,
        records=records,
        zone_text=zone_file(domain, records),
        record_guides=RECORD_GUIDES,
        correct=count_correct(records),
        last_checked_at=max(checked_times, default=None),
        is_monitored=request.ctx.settings.domains.check_hours > 0,
        grace_hours=domain_records.GRACE_PERIOD // times.HOUR,
        calendar=calendar,
        today=next((day for day in calendar or () if day.state is warmup.Step.TODAY), None),
        date_of=date_of,
        has_key=any(shown.record.purpose is domain_records.RecordPurpose.DKIM for shown in records),
        is_rotating=is_rotating(records),
        overlap_days=domain_keys.OVERLAP_DAYS,
        is_warmup_enabled=request.ctx.settings.warmup.enabled,
    )


def zone_file(domain: stored.Domain, records: list[domain_checks.RecordStatus]) -> str:
    """The records that the account publishes, as lines of a zone file."""
    own = [shown for shown in records if not shown.record.managed and not shown.record.needed_until]
    lines = [
        domain_records.zone_line(shown.record, shown.value) if shown.value else f"; {shown.record.name}: not configured"
        for shown in own
    ]
    return "\n".join([f"; Records of {domain.name}", *lines, ""])


async def save_zone_file(request: requests.PageRequest) -> routing.Response:
    domain = await domains.find(request.ctx, request.account_id, request.path["id"])
    zone = zone_file(domain, await domain_checks.records(request.ctx, domain))
    return routing.attachment(f"{domain.name}.zone", zone.encode(), content_type="text/plain; charset=utf-8")


async def check(request: requests.PageRequest) -> routing.Response:
    checked = await domain_checks.check_now(request.ctx, request.account_id, request.path["id"])
    name = checked.domain.name
    match checked.change:
        case domain_records.VerificationChange.VERIFIED:
            notice, kind = f"{name} is verified. You can send from it.", "good"
        case domain_records.VerificationChange.LOST:
            notice, kind = f"{name} is no longer verified: its DKIM record is missing from DNS.", "bad"
        case _:
            correct, total = count_correct(await domain_checks.records(request.ctx, checked.domain))
            notice = f"DNS checked: {correct} of {total} required and recommended records are correct."
            kind = "good" if correct == total else "warn"
    return request.redirect(f"/domains/{checked.domain.id}", notice=notice, kind=kind)


async def rotate_key(request: requests.PageRequest) -> routing.Response:
    domain = await domains.find(request.ctx, request.account_id, request.path["id"])
    await key_rotation.rotate(request.ctx, domain)
    notice = "New DKIM key created. Add its record, then check: it signs as soon as the record is found."
    return request.redirect(f"/domains/{domain.id}", notice=notice)


async def set_link_host(request: requests.PageRequest) -> routing.Response:
    form: LinkHost = request.form
    domain = await link_hosts.change(request.ctx, request.account_id, request.path["id"], form.link_host or None)
    notice = f"Unsubscribe links now lead to {domain.link_host or 'this service'}."
    return request.redirect(f"/domains/{domain.id}", notice=notice)


async def remove(request: requests.PageRequest) -> routing.Response:
    domain = await domains.find(request.ctx, request.account_id, request.path["id"])
    await domains.remove(request.ctx, request.account_id, domain.id)
    return request.redirect("/domains", notice=f"{domain.name} removed. You can no longer send from it.")


async def reports(request: requests.PageRequest) -> routing.Response:
    domain = await domains.find(request.ctx, request.account_id, request.path["id"])
    found = await received_reports.summary(request.ctx, domain.account_id, domain.name)
    dmarc = next(
        shown
        for shown in await domain_checks.records(request.ctx, domain)
        if shown.record.purpose is domain_records.RecordPurpose.DMARC
    )
    address = received_reports.address(request.ctx, domain.name)
    return request.page(
        "domain_reports.html",
        domain=domain,
        verification_status=verification_status(domain),
        found=found,
        bars=_bars(found, today=times.day_of(request.ctx.clock())),
        dmarc=dmarc,
        policy=(tag_lists.parse(dmarc.value or "") or {}).get("p", "none").lower(),
        tls_name=mta_sts.report_record_name(domain.name),
        tls_record=domain_records.requesting(mta_sts.FIRST_REPORT_RECORD, address) if address else "",
        min_days=dmarc_readiness.MIN_DAYS,
        min_passed=dmarc_readiness.MIN_PASSED,
        max_shown=MAX_SHOWN,
    )


def _bars(found: received_reports.Summary, *, today: int) -> list[Bar]:
    none = received_reports.Totals(0, 0)
    totals = [(day, found.days.get(day, none)) for day in range(today - dmarc_readiness.WINDOW_DAYS + 1, today + 1)]
    scale = 100 / max(1, *(total.messages for _, total in totals))
    bars = []
    for day, total in totals:
        failed = total.messages - total.passed
        bars.append(
            Bar(date_of(day), total.messages, failed, round(total.messages * scale, 1), round(failed * scale, 1))
        )
    return bars


async def dismiss(request: requests.PageRequest) -> routing.Response:
    form: ReportedNetwork = request.form
    domain = await domains.find(request.ctx, request.account_id, request.path["id"])
    await received_reports.dismiss(request.ctx, domain.account_id, domain.name, form.network)
    path = f"/domains/{domain.id}/reports"
    notice, undo = f"{form.network} no longer counts.", request.undo(f"{path}/restore", network=form.network)
    return request.redirect(path, notice=notice, undo=undo)


async def restore(request: requests.PageRequest) -> routing.Response:
    form: ReportedNetwork = request.form
    domain = await domains.find(request.ctx, request.account_id, request.path["id"])
    await received_reports.restore(request.ctx, domain.account_id, domain.name, form.network)
    return request.redirect(f"/domains/{domain.id}/reports", notice=f"{form.network} counts again.")


def date_of(day: int) -> str:
    moment = dt.datetime.fromtimestamp(day * times.DAY // times.SECOND, dt.UTC)
    return f"{moment:%b} {moment.day}"


ROUTES: Final = (
    requests.get("/domains", index, query=lists.Query),
    requests.post("/domains", create, form=NewDomain),
    requests.get("/domains/{id}", show),
    requests.get("/domains/{id}/zone", save_zone_file),
    requests.get("/domains/{id}/reports", reports),
    requests.post("/domains/{id}/reports/dismiss", dismiss, form=ReportedNetwork),
    requests.post("/domains/{id}/reports/restore", restore, form=ReportedNetwork),
    requests.post("/domains/{id}/check", check),
    requests.post("/domains/{id}/rotate-key", rotate_key),
    requests.post("/domains/{id}/link-host", set_link_host, form=LinkHost),
    requests.post("/domains/{id}/remove", remove),
)
