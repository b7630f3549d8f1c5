"""`/suppressions`: the addresses that get no mail of the account: looked at, added, taken off, and as a CSV file."""

from typing import Final, Literal

import msgspec

from postroad import errors
from postroad.dashboard import forms, requests
from postroad.dashboard import site as sites
from postroad.services import context
from postroad.services.suppressions import registry as suppressions
from postroad.services.suppressions import suppression_csv
from postroad.storage import suppressions as stored
from postroad.web import routing

PATH: Final = "/suppressions"
ROWS: Final = 50
REASON: Final = "put there by the account"
# Some hundred thousand addresses as a form carries them. Longer files go through the API, which takes them as they are.
FILE_BYTES: Final = 8 * 1024 * 1024
CSV: Final = "text/csv; charset=utf-8"
# What put an address there, in the words of the page.
SOURCES: Final = {
    stored.Source.BOUNCE: "The mailbox does not exist",
    stored.Source.LATE_BOUNCE: "A bounce was reported later",
    stored.Source.COMPLAINT: "Its owner complained",
    stored.Source.OPERATOR: "Whoever runs this service",
    stored.Source.ACCOUNT: "Your team",
    stored.Source.IMPORT: "An imported file",
}


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the list. The form of the page sends what was left empty, too."""

    email: str | None = None
    source: Literal["", "bounce", "late_bounce", "complaint", "operator", "account", "import"] | None = None
    after: str | None = None


class Addition(forms.Form, frozen=True, kw_only=True):
    """An address that shall get nothing."""

    email: str
    reason: str | None = None


class Removal(forms.Form, frozen=True, kw_only=True):
    """An address that may get mail again."""

    email: str


class File(forms.Form, frozen=True, kw_only=True):
    """The text of a file, or a list of addresses."""

    content: str


async def index(page_request: requests.PageRequest) -> routing.Response:
    """A part of the list, or one address of it."""
    query: Query = page_request.query
    email, source = (query.email or "").strip(), query.source or None
    if email:
        # One address is shown whatever put it there.
        source = None
        found = await _only(page_request, email)
    else:
        # PostgreSQL keeps no NUL, and no address has one.
        after = (query.after or "").replace("\0", "")
        found = await suppressions.page(
            page_request.ctx, page_request.account_id, after=after, limit=ROWS + 1, source=source
        )
    return page_request.page(
        "suppressions.html",
        rows=found[:ROWS],
        following=found[ROWS - 1].email_key if len(found) > ROWS else None,
        email=email,
        source=source or "",
        is_first=not (email or source or query.after),
        sources=SOURCES,
    )


async def _only(page_request: requests.PageRequest, email: str) -> list[stored.Suppression]:
    try:
        return [await suppressions.find(page_request.ctx, page_request.account_id, email)]
    except errors.NotFound:
        return []


async def add(page_request: requests.PageRequest) -> routing.Response:
    """Put an address onto the list."""
    form: Addition = page_request.form
    reason, source = form.reason or REASON, stored.Source.ACCOUNT
    row, is_new = await suppressions.add(
        page_request.ctx, page_request.account_id, form.email, reason=reason, source=source
    )
    if not is_new:
        raise errors.Conflict(f"email: {row.email_key} is on the list already; to change the reason, remove it first")
    return page_request.redirect(PATH, notice=f"{row.email_key} gets no more mail of this account.")


async def remove(page_request: requests.PageRequest) -> routing.Response:
    """Take an address off the list."""
    form: Removal = page_request.form
    email = await suppressions.remove(page_request.ctx, page_request.account_id, form.email)
    return page_request.redirect(PATH, notice=f"{email} may get mail again.")


async def import_file(page_request: requests.PageRequest) -> routing.Response:
    """Put the addresses of a file onto the list."""
    form: File = page_request.form
    read = await suppression_csv.import_csv(page_request.ctx, page_request.account_id, form.content.encode())
    counted = "1 address was" if read.added == 1 else f"{read.added:,} addresses were"
    already = f" {read.already:,} of the file changed nothing: they were there already." if read.already else ""
    return page_request.redirect(PATH, notice=f"{counted} added.{already}")


async def export_file(page_request: requests.PageRequest) -> routing.Response:
    """The whole list as a file."""
    parts = suppression_csv.export(page_request.ctx, page_request.account_id)
    disposition = ("Content-Disposition", 'attachment; filename="suppressions.csv"')
    return routing.Response(200, parts, headers=(disposition,), content_type=CSV)


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The list and what can be done with it."""
    return (
        requests.get(site, PATH, index, query=Query),
        requests.post(site, PATH, add, form=Addition),
        requests.post(site, f"{PATH}/remove", remove, form=Removal),
        requests.post(site, f"{PATH}/import", import_file, form=File, body_limit=FILE_BYTES),
        requests.get(site, f"{PATH}/export", export_file),
    )
