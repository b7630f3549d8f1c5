"""`/suppressions`: suppressed addresses, as CSV too; `/recipients/{email}`: what became of mail to an address."""

import contextlib
from collections.abc import Mapping
from typing import Final, Literal
from urllib import parse

import msgspec

from postroad import errors
from postroad.dashboard.framework import forms, navigation, requests
from postroad.dashboard.mail import recipient_views
from postroad.model.units import identifiers
from postroad.protocol.mime import address
from postroad.services.messages import lookup, message_history
from postroad.services.people import tokens
from postroad.services.queue import wait_reasons
from postroad.services.suppressions import suppression_csv, unsubscribes
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import suppressions as stored
from postroad.web import routing

PATH: Final = "/suppressions"
ROWS: Final = 50
# What a row that was removed is signed for.
RESTORE: Final = "suppression"
# About 100,000 form-encoded addresses. Longer files go through the API, which takes them unencoded.
FILE_BYTES: Final = 8 * 1024 * 1024
# Who or what suppressed an address, as the page says it.
SOURCES: Final[Mapping[str, str]] = {
    stored.Source.BOUNCE: "Mailbox does not exist",
    stored.Source.LATE_BOUNCE: "Asynchronous bounce",
    stored.Source.COMPLAINT: "Spam complaint",
    stored.Source.OPERATOR: "Added by the operator",
    stored.Source.ACCOUNT: "Added by your team",
    stored.Source.IMPORT: "Imported",
    stored.ListSource.ONE_CLICK: "Unsubscribed with one click",
    stored.ListSource.PAGE: "Unsubscribed on the page",
}


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the list. The search form also sends empty fields."""

    email: str | None = None
    source: (
        Literal["", "bounce", "late_bounce", "complaint", "operator", "account", "import", "one_click", "page"] | None
    ) = None
    # Who has left it, in place of the suppressed addresses.
    list_name: str | None = msgspec.field(name="list", default=None)
    after: str | None = None


class Addition(forms.Form, frozen=True, kw_only=True):
    email: str
    reason: str | None = None
    list_name: str | None = msgspec.field(name="list", default=None)


class Removal(forms.Form, frozen=True, kw_only=True):
    """An address to remove from the list; one that complained has to be confirmed."""

    email: str
    list_name: str | None = msgspec.field(name="list", default=None)
    confirmed: Literal["yes"] | None = None


class Restoration(forms.Form, frozen=True, kw_only=True):
    """A row that was removed, as it was signed then."""

    row: str


class File(forms.Form, frozen=True, kw_only=True):
    """The content of a CSV file, or a list of addresses."""

    content: str


async def index(request: requests.PageRequest) -> routing.Response:
    query: Query = request.query
    email, source, list_name = (query.email or "").strip(), query.source or None, query.list_name or ""
    if email:
        # A single address is shown whatever its source.
        source = None
        found = await _only(request, email, list_name)
    else:
        # PostgreSQL cannot store NUL, and no address has one.
        after = (query.after or "").replace("\0", "")
        found = await suppressions.page(
            request.ctx, request.account_id, after=after, limit=ROWS + 1, source=source, list_name=list_name
        )
    rows, next_cursor = identifiers.page(found, limit=ROWS, key="email_key")
    return request.page(
        "suppressions.html",
        rows=rows,
        next_cursor=next_cursor,
        email=email,
        source=source or "",
        list_name=list_name,
        lists=await suppressions.lists(request.ctx, request.account_id),
        is_first=not (email or source or list_name or query.after),
        sources=SOURCES,
        cause=_cause,
    )


def _cause(row: stored.Suppression) -> str:
    """Who or what suppressed an address; the list has no source for recipients who stop all mail."""
    if row.source == stored.Source.ACCOUNT and row.message_id and row.reason == unsubscribes.BY_RECIPIENT:
        return "Unsubscribed from all mail"
    return SOURCES.get(row.source, row.source)


async def _only(request: requests.PageRequest, email: str, list_name: str) -> list[stored.Suppression]:
    try:
        return [await suppressions.find(request.ctx, request.account_id, email, list_name=list_name)]
    except errors.NotFound:
        return []


async def add(request: requests.PageRequest) -> routing.Response:
    form: Addition = request.form
    reason, name = form.reason or suppressions.BY_ACCOUNT, form.list_name or ""
    row, is_new = await suppressions.add(request.ctx, request.account_id, form.email, reason=reason, list_name=name)
    if not is_new:
        raise errors.Conflict(f"email: {row.email_key} is already suppressed; to change the reason, remove it first")
    undo = request.undo(f"{PATH}/remove", email=row.email_key, list=name)
    return request.redirect(_list_url(name), notice=f"{row.email_key} is suppressed.", undo=undo)


def _list_url(list_name: str) -> str:
    return f"{PATH}?list={parse.quote(list_name, safe='')}" if list_name else PATH


async def remove(request: requests.PageRequest) -> routing.Response:
    form: Removal = request.form
    is_confirmed, list_name = form.confirmed is not None, form.list_name or ""
    return await _remove(request, form.email, back_to=PATH, is_confirmed=is_confirmed, list_name=list_name)


async def _remove(
    request: requests.PageRequest, email: str, *, back_to: str, is_confirmed: bool, list_name: str = ""
) -> routing.Response:
    """Remove an address; one that complained only when that is confirmed."""
    found = await suppressions.find(request.ctx, request.account_id, email, list_name=list_name)
    if found.source == stored.Source.COMPLAINT and not is_confirmed:
        msg = "email: the recipient reported your mail as spam; confirm that they asked to receive mail again"
        raise errors.Conflict(msg)
    await suppressions.remove(request.ctx, request.account_id, email, list_name=list_name)
    row = tokens.write_value(request.ctx, found, purpose=RESTORE)
    undo = request.undo(f"{back_to}/restore", row=row)
    return request.redirect(back_to, notice=f"{found.email_key} is no longer suppressed.", undo=undo)


async def restore(request: requests.PageRequest) -> routing.Response:
    return await _restore(request, back_to=PATH)


async def _restore(request: requests.PageRequest, *, back_to: str) -> routing.Response:
    """Undo a removal: the address is on the list as it was, with its reason and its date."""
    form: Restoration = request.form
    row = tokens.read_value(request.ctx, form.row, stored.Suppression, purpose=RESTORE)
    if row is None or row.account_id != request.account_id:
        raise errors.NotFound("this is not an address that was removed here")
    await suppressions.restore(request.ctx, row)
    return request.redirect(back_to, notice=f"{row.email_key} is suppressed again.")


async def import_file(request: requests.PageRequest) -> routing.Response:
    form: File = request.form
    read = await suppression_csv.import_csv(request.ctx, request.account_id, form.content.encode())
    counted = "1 address" if read.added == 1 else f"{read.added:,} addresses"
    unchanged = f" {read.unchanged:,} were already suppressed." if read.unchanged else ""
    return request.redirect(PATH, notice=f"{counted} imported.{unchanged}")


async def export_file(request: requests.PageRequest) -> routing.Response:
    return routing.attachment("suppressions.csv", suppression_csv.export(request.ctx, request.account_id))


ROUTES: Final = (
    requests.get(PATH, index, query=Query),
    requests.post(PATH, add, form=Addition),
    requests.post(f"{PATH}/remove", remove, form=Removal),
    requests.post(f"{PATH}/restore", restore, form=Restoration),
    requests.post(f"{PATH}/import", import_file, form=File, body_limit=FILE_BYTES),
    requests.get(f"{PATH}/export", export_file, viewing=requests.Viewing.REFUSED),
)


class RecipientRemoval(forms.Form, frozen=True, kw_only=True):
    """Remove the address from the suppression list; one that complained has to be confirmed."""

    confirmed: Literal["yes"] | None = None


async def show_recipient(request: requests.PageRequest) -> routing.Response:
    history = await message_history.of_address(request.ctx, request.account_id, request.path["email"])
    sent = [
        msgspec.structs.replace(entry, subject=lookup.HIDDEN_SUBJECT) if request.hides(entry.message_id) else entry
        for entry in history.sent
    ]
    history = msgspec.structs.replace(history, sent=sent)
    message_id = _telling_message(history)
    return request.page(
        "recipient.html",
        history=history,
        cause=_cause,
        message_id=message_id,
        outcomes=await _outcomes(request, history.email_key, message_id) if message_id else [],
        ahead_in_words=wait_reasons.ahead_in_words,
    )


def _telling_message(history: message_history.History) -> str | None:
    """The message that says most about the address: the one that suppressed it, or the newest."""
    if history.suppression is not None:
        return history.suppression.message_id
    return history.sent[0].message_id if history.sent else None


async def _outcomes(request: requests.PageRequest, email: str, message_id: str) -> list[recipient_views.Outcome]:
    """What became of a message for the address; nothing if the message was deleted."""
    with contextlib.suppress(errors.NotFound):
        found = await lookup.details(request.ctx, request.account_id, message_id)
        views = await recipient_views.read(request.ctx, request.account_id, found)
        return recipient_views.outcomes(view for view in views if address.parse(view.recipient.email).key == email)
    return []


async def suppress_recipient(request: requests.PageRequest) -> routing.Response:
    history = await message_history.of_address(request.ctx, request.account_id, request.path["email"])
    await suppressions.add(request.ctx, request.account_id, history.email_key)
    path = navigation.recipient_url(history.email_key)
    return request.redirect(path, notice=f"{history.email_key} is suppressed.", undo=request.undo(f"{path}/remove"))


async def unsuppress_recipient(request: requests.PageRequest) -> routing.Response:
    form: RecipientRemoval = request.form
    history = await message_history.of_address(request.ctx, request.account_id, request.path["email"])
    if history.suppression is None:
        raise errors.Conflict(f"{history.email_key} is not suppressed")
    path = navigation.recipient_url(history.email_key)
    return await _remove(request, history.email_key, back_to=path, is_confirmed=form.confirmed is not None)


async def restore_recipient(request: requests.PageRequest) -> routing.Response:
    return await _restore(request, back_to=navigation.recipient_url(request.path["email"]))


RECIPIENT_ROUTES: Final = (
    requests.get("/recipients/{email}", show_recipient),
    requests.post("/recipients/{email}/suppress", suppress_recipient),
    requests.post("/recipients/{email}/remove", unsuppress_recipient, form=RecipientRemoval),
    requests.post("/recipients/{email}/restore", restore_recipient, form=Restoration),
)
