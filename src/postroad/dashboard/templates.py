"""`/templates`: the list, and the editor with its live preview.

The preview is a sandboxed frame whose document has its own policy (`services/messages/previews.py`). An alias can be
any name, so pages that do not belong to a template are under `/template`.
"""

import json
import re
from typing import Any, Final, Literal

import msgspec

from postroad import errors
from postroad.dashboard import forms, lists, requests
from postroad.model import caller, cursors, limits, mail
from postroad.protocol import strict_json
from postroad.services import templates, work_limits
from postroad.services.acceptance import send_test
from postroad.services.messages import previews
from postroad.storage import templates as stored
from postroad.web import routing

PATH: Final = "/templates"
ONE: Final = f"{PATH}/{{alias}}"
ROWS: Final = 50
# Text and HTML of maximum length, with four percent-encoded octets per character; and the values.
FORM_BYTES: Final = 2 * 12 * templates.BODY_CHARACTERS + 512 * 1024
# An editor has one preview in progress, which takes a few hundredths of a second.
PREVIEWS: Final = work_limits.WorkLimit("previews", per_account=4, per_process=8, retry_seconds=1)
# The longest list of senders to choose from.
MAX_SENDERS: Final = 20
# In the example, for an account without a domain.
SENDER: Final = "hello@example.com"
RECIPIENT: Final = "ada@example.net"
# The content of a new template.
SUBJECT: Final = "Welcome, {{name}}"
TEXT: Final = "Hello {{name}},\n\nThanks for joining us.\n"
HTML: Final = """\
<div style="max-width: 560px; margin: 0 auto; padding: 0 16px; font-family: sans-serif; line-height: 1.5">
  <h1>Hello {{name}},</h1>
  <p>Thanks for joining us.</p>
</div>
"""

_SEPARATORS: Final = re.compile(r"[_.-]+")

Part = Literal["html", "text"]


class PartQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which body is shown."""

    part: Part | None = None


class Draft(forms.Form, frozen=True, kw_only=True):
    """The content of the editor. `values` is a JSON object of test values."""

    alias: str | None = None
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    values: str | None = None
    part: Part | None = None
    sender: str | None = None
    to: str | None = None

    def render(self) -> templates.Rendered:
        """The draft with its test values."""
        variables = _variables(self.values)
        return templates.render_draft(subject=self.subject or "", text=self.text, html=self.html, variables=variables)


async def index(request: requests.PageRequest) -> routing.Response:
    """A page of the list."""
    query: lists.Query = request.query
    # PostgreSQL cannot store NUL, and no alias has one.
    after = (query.after or "").replace("\0", "")
    found = await templates.summaries(request.ctx, request.account_id, after, ROWS + 1)
    rows, next_cursor = cursors.page(found, limit=ROWS, key="alias")
    return request.page("templates.html", rows=rows, next_cursor=next_cursor, is_first=not after)


async def new(request: requests.PageRequest) -> routing.Response:
    """The editor with an example."""
    draft = Draft(subject=SUBJECT, text=TEXT, html=HTML, values=_sample_json(["name"]))
    return request.page("template.html", **await _editor(request, draft, saved=None))


async def create(request: requests.PageRequest) -> routing.Response:
    """Create a template; an existing one is not replaced."""
    draft: Draft = request.form
    alias = draft.alias or ""
    if await _is_taken(request, alias):
        raise errors.Conflict(f"alias: the template '{alias}' already exists; choose another alias, or edit that one")
    return await _save(request, alias, draft)


async def show(request: requests.PageRequest) -> routing.Response:
    """The editor with a template."""
    saved = await _found(request)
    return request.page("template.html", **await _editor(request, _draft(saved), saved=saved))


async def save(request: requests.PageRequest) -> routing.Response:
    """Replace a template."""
    saved = await _found(request)
    return await _save(request, saved.alias, request.form)


async def remove(request: requests.PageRequest) -> routing.Response:
    """Remove a template."""
    alias = request.path["alias"]
    await templates.remove(request.ctx, request.account_id, alias)
    return request.redirect(PATH, notice=f"Template {alias} removed.")


async def send_draft(request: requests.PageRequest) -> routing.Response:
    """Send the content of the editor, saved or not."""
    saved, draft = await _found(request), request.form
    accepted = await send_test.send_rendered(
        request.ctx,
        request.http.caller,
        await request.ctx.threads.run(request.account_id, draft.render),
        sender=draft.sender or "",
        to=draft.to or request.user.email,
        request_id=request.http.id,
    )
    values = await _editor(request, draft, saved=saved)
    return request.page("template.html", status=202, **{**values, "sent": accepted.message_id})


async def show_saved(request: requests.PageRequest) -> routing.Response:
    """The first preview: the saved template with sample values."""
    return await _document(request, _draft(await _found(request)), request.query.part)


async def show_draft(request: requests.PageRequest) -> routing.Response:
    """A preview of the editor's content, or its error."""
    draft: Draft = request.form
    return await _document(request, draft, draft.part)


async def _document(request: requests.PageRequest, draft: Draft, part: Part | None) -> routing.Response:
    with work_limits.acquire(request.ctx, PREVIEWS, request.account_id):
        return await _shown(request, draft, part)


async def _shown(request: requests.PageRequest, draft: Draft, part: Part | None) -> routing.Response:
    try:
        rendered, problem = await request.ctx.threads.run(request.account_id, draft.render), None
    except errors.PostroadError as refusal:
        rendered, problem = templates.Rendered("", None, None), refusal.message
    wants_text = part == "text" or (part is None and not rendered.html)
    text = (rendered.text or "")[: previews.TEXT_CHARACTERS] if wants_text else None
    values = {"problem": problem, "subject": rendered.subject, "text": text, "has_html": rendered.html is not None}
    head = request.site.pages.render("parts/template_preview.html", values)
    body = (
        b""
        if wants_text or rendered.html is None
        else await previews.of_html(request.ctx, request.account_id, rendered.html)
    )
    return routing.Response(200, head + body, headers=previews.DOCUMENT_HEADERS, content_type=previews.DOCUMENT_TYPE)


async def _editor(request: requests.PageRequest, draft: Draft, *, saved: stored.Template | None) -> dict[str, Any]:
    may_send = request.may(caller.Permission.SEND)
    senders = await send_test.senders(request.ctx, request.account_id, limit=MAX_SENDERS) if may_send and saved else []
    example = _example(saved, sender=senders[0] if senders else SENDER) if saved else ""
    return {"draft": draft, "saved": saved, "senders": senders, "example": example, "sent": None}


async def _save(request: requests.PageRequest, alias: str, draft: Draft) -> routing.Response:
    await templates.put(
        request.ctx, request.account_id, alias, subject=draft.subject or "", text=draft.text, html=draft.html
    )
    return request.redirect(f"{PATH}/{alias}", notice=f"Template {alias} saved.")


async def _found(request: requests.PageRequest) -> stored.Template:
    return await templates.find(request.ctx, request.account_id, request.path["alias"])


async def _is_taken(request: requests.PageRequest, alias: str) -> bool:
    try:
        await templates.find(request.ctx, request.account_id, alias)
    except errors.NotFound:
        return False
    return True


def _draft(saved: stored.Template) -> Draft:
    """A saved template with sample values."""
    return Draft(subject=saved.subject, text=saved.text, html=saved.html, values=_sample_json(templates.names(saved)))


def _sample_json(names: list[str]) -> str:
    return json.dumps(_sample_values(names), indent=2)


def _sample_values(names: list[str]) -> dict[str, str]:
    """A sample value for each name: the name itself with spaces."""
    return {name: _SEPARATORS.sub(" ", name).strip() or name for name in names}


def _example(saved: stored.Template, *, sender: str) -> str:
    message = {"from": sender, "to": RECIPIENT, "template": saved.alias}
    variables = _sample_values(templates.names(saved)[: limits.VARIABLES])
    return json.dumps({**message, "variables": variables} if variables else message, indent=2)


def _variables(text: str | None) -> dict[str, mail.TemplateValue]:
    try:
        return msgspec.convert(strict_json.read((text or "{}").encode()), dict[str, mail.TemplateValue])
    except strict_json.JsonError as problem:
        raise errors.InvalidRequest(f"values: {problem}") from None
    except msgspec.ValidationError:
        raise errors.InvalidRequest("values: must be a JSON object of strings, numbers and booleans") from None


ROUTES: Final = (
    requests.get(PATH, index, query=lists.Query),
    requests.post(PATH, create, form=Draft, body_limit=FORM_BYTES),
    requests.get("/template/new", new, permission=caller.Permission.CHANGE),
    requests.post("/template/preview", show_draft, form=Draft, permission=requests.VIEW, body_limit=FORM_BYTES),
    requests.get(ONE, show),
    requests.post(ONE, save, form=Draft, body_limit=FORM_BYTES),
    requests.get(f"{ONE}/preview", show_saved, query=PartQuery),
    requests.post(f"{ONE}/remove", remove),
    requests.post(f"{ONE}/test", send_draft, form=Draft, permission=caller.Permission.SEND, body_limit=FORM_BYTES),
)
