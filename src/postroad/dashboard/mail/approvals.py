"""`/approvals`: sends of API keys that wait for a person, with what they would send; approve and reject."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.dashboard.framework import forms, requests
from postroad.mail.accept import approval_limit
from postroad.services import usage_limits
from postroad.services.messages import approvals as decision
from postroad.services.messages import previews
from postroad.services.people import api_keys
from postroad.services.templates import templates
from postroad.storage.people import approvals
from postroad.web import routing

PATH: Final = "/approvals"
# As many as show whom a send is for.
FIRST_RECIPIENTS: Final = 10
PREVIEW_CHARACTERS: Final = 2_000
STATES: Final = {
    approvals.State.PENDING: "Waiting",
    approvals.State.APPROVING: "Sending",
    approvals.State.APPROVED: "Approved",
    approvals.State.REJECTED: "Rejected",
}


class Decision(forms.Form, frozen=True, kw_only=True):
    approval_id: str


class Row(msgspec.Struct, frozen=True):
    approval: approvals.Approval
    state: str
    is_open: bool
    key_name: str
    sender: str
    template: str
    first_recipients: Sequence[str]
    subject: str
    bodies: Sequence[str]


async def index(request: requests.PageRequest) -> routing.Response:
    """The latest sends, newest first; those that wait have a preview."""
    ctx, account_id = request.ctx, request.account_id
    names = {key.id: key.name for key in await api_keys.of_account(ctx, account_id)}
    with usage_limits.acquire(ctx, decision.LISTS, account_id):
        found = await decision.latest(ctx, account_id)
        rows = [await _row(request, approval, names.get(approval.key_id, approval.key_id)) for approval in found]
    if request.hides_content:
        # Recipients and content are shown for open ones only.
        rows = [msgspec.structs.replace(row, is_open=False) for row in rows]
    return request.page("approvals.html", rows=rows)


async def _row(request: requests.PageRequest, approval: approvals.Approval, key_name: str) -> Row:
    expired = approval_limit.is_expired(approval, now=request.ctx.clock())
    is_open = not expired and approval.state in {approvals.State.PENDING, approvals.State.APPROVING}
    body = await decision.content(request.ctx, request.account_id, approval.id) if is_open else {}
    items: Sequence[Mapping[str, Any]] = body.get("recipients") or body.get("emails") or (body,)
    first = {**body, **items[0]}
    subject, bodies = await _preview(request, first) if is_open else ("", ())
    return Row(
        approval=approval,
        state="Expired" if expired else STATES[approvals.State(approval.state)],
        is_open=is_open,
        key_name=key_name,
        sender=str(first.get("from") or ""),
        template=str(first.get("template") or ""),
        first_recipients=[address for item in items for address in _addresses(item)][:FIRST_RECIPIENTS],
        subject=subject,
        bodies=bodies,
    )


def _addresses(item: Mapping[str, Any]) -> list[str]:
    given = [item.get(member) or () for member in ("to", "cc", "bcc")]
    return [str(address) for value in given for address in ([value] if isinstance(value, str) else value)]


async def _preview(request: requests.PageRequest, first: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """The subject and the text for the first recipient; or why they cannot be shown."""
    if not first.get("template"):
        return str(first.get("subject") or ""), _bodies(first.get("text"), first.get("html"))
    try:
        shown = await templates.preview(
            request.ctx, request.account_id, str(first["template"]), first.get("variables") or {}
        )
    except errors.PostroadError as problem:
        return "", [problem.message]
    return shown.subject, _bodies(shown.text, shown.html)


def _bodies(*given: str | None) -> Sequence[str]:
    """The beginning of text and HTML: what most recipients see is the HTML, whatever the text says."""
    return [body if len(body) <= PREVIEW_CHARACTERS else f"{body[:PREVIEW_CHARACTERS]} …" for body in given if body]


async def download(request: requests.PageRequest) -> routing.Response:
    """Everything that was asked for: each recipient and each message."""
    asked = await decision.content(request.ctx, request.account_id, request.path["id"])
    content = msgspec.json.format(msgspec.json.encode(asked), indent=2)
    headers = previews.download_headers("request.json")
    return routing.Response(200, content, headers=headers, content_type=previews.DOWNLOAD_TYPE)


def _counted(done: approvals.Approval) -> str:
    return "1 recipient" if done.recipients == 1 else f"{done.recipients:,} recipients"


async def approve(request: requests.PageRequest) -> routing.Response:
    form: Decision = request.form
    done = await decision.approve(request.ctx, request.account_id, form.approval_id)
    return request.redirect(PATH, notice=f"Approved: {_counted(done)}.")


async def reject(request: requests.PageRequest) -> routing.Response:
    form: Decision = request.form
    done = await decision.reject(request.ctx, request.account_id, form.approval_id)
    return request.redirect(PATH, notice=f"Rejected: {_counted(done)}.")


ROUTES: Final = (
    requests.get(PATH, index),
    requests.get(f"{PATH}/{{id}}/request", download, permission=requests.CONTENT, viewing=requests.Viewing.REFUSED),
    requests.post(f"{PATH}/approve", approve, form=Decision),
    requests.post(f"{PATH}/reject", reject, form=Decision),
)
