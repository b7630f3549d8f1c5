"""`/templates`: the list, and the editor, in whose frame somebody sees what they write as it would be sent.

What is written is shown by the guards of `services/previews.py`: a frame without any right, filled by an answer with a
policy of its own. An alias may be any word, so pages that are of no template stand under `/template`.
"""

import asyncio
import json
import re
from typing import Any, Final, Literal

import msgspec

from postroad import errors
from postroad.dashboard import forms, visits
from postroad.dashboard import site as sites
from postroad.model import caller, limits, mail
from postroad.protocol import strict_json
from postroad.services import context, previews, templates, trying_out, turns
from postroad.storage import templates as stored
from postroad.web import routing

PATH: Final = "/templates"
ROWS: Final = 50
# Text and HTML as long as they may be, each of the four octets of each character percent-encoded; and values.
FORM_BYTES: Final = 2 * 12 * templates.BODY_CHARACTERS + 512 * 1024
# Whoever writes has one under way, and each takes some hundredths of a second.
PREVIEWS: Final = turns.Kind("previews", of_account=4, of_process=8, retry_seconds=1)
# Whoever has more domains than this knows from which to send.
MOST_SENDERS: Final = 20
# In the example, for an account that has no domain to send from yet.
SENDER: Final = "hello@example.com"
RECIPIENT: Final = "ada@example.net"
# What a new template begins with: enough to see how one is made.
SUBJECT: Final = "Welcome, {{name}}"
TEXT: Final = "Hello {{name}},\n\ngood to have you with us.\n"
HTML: Final = """\
<div style="max-width: 560px; margin: 0 auto; padding: 0 16px; font-family: sans-serif; line-height: 1.5">
  <h1>Hello {{name}},</h1>
  <p>good to have you with us.</p>
</div>
"""

_SEPARATORS: Final = re.compile(r"[_.-]+")

Part = Literal["html", "text"]


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the list."""

    after: str | None = None


class PartQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which body is shown."""

    part: Part | None = None


class Draft(forms.Form, frozen=True, kw_only=True):
    """Everything in the editor, whatever its buttons do. `values` is the JSON object of the test values."""

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


async def index(visit: visits.Visit) -> routing.Answer:
    """A part of the list."""
    query: Query = visit.query
    # PostgreSQL keeps no NUL, and no alias has one.
    after = (query.after or "").replace("\0", "")
    found = await templates.summaries(visit.ctx, visit.account_id, after, ROWS + 1)
    following = found[ROWS - 1].alias if len(found) > ROWS else None
    return visit.page("templates.html", rows=found[:ROWS], following=following, is_first=not after)


async def begin(visit: visits.Visit) -> routing.Answer:
    """The editor with an example in it."""
    draft = Draft(subject=SUBJECT, text=TEXT, html=HTML, values=_samples(["name"]))
    return visit.page("template.html", **await _editor(visit, draft, saved=None))


async def make(visit: visits.Visit) -> routing.Answer:
    """Save a new one; one that is there already is not replaced from here."""
    draft: Draft = visit.form
    alias = draft.alias or ""
    if await _is_taken(visit, alias):
        raise errors.Conflict(f"alias: there is a template '{alias}' already; choose another alias, or change that one")
    return await _save(visit, alias, draft)


async def show(visit: visits.Visit) -> routing.Answer:
    """The editor with a template in it."""
    saved = await _found(visit)
    draft = Draft(subject=saved.subject, text=saved.text, html=saved.html, values=_samples(templates.names(saved)))
    return visit.page("template.html", **await _editor(visit, draft, saved=saved))


async def save(visit: visits.Visit) -> routing.Answer:
    """Replace a template."""
    saved = await _found(visit)
    return await _save(visit, saved.alias, visit.form)


async def remove(visit: visits.Visit) -> routing.Answer:
    """Forget a template."""
    alias = visit.request.path["alias"]
    await templates.remove(visit.ctx, visit.account_id, alias)
    return visit.go(PATH, notice=f"The template {alias} is removed.")


async def send_test(visit: visits.Visit) -> routing.Answer:
    """Send what is in the editor, saved or not; the editor stays as it is."""
    saved, draft = await _found(visit), visit.form
    accepted = await trying_out.send_rendered(
        visit.ctx,
        visit.request.caller,
        await asyncio.to_thread(draft.render),
        sender=draft.sender or "",
        to=draft.to or visit.user.email,
        request_id=visit.request.id,
    )
    values = await _editor(visit, draft, saved=saved)
    return visit.page("template.html", status=202, **{**values, "sent": accepted.message_id})


async def show_saved(visit: visits.Visit) -> routing.Answer:
    """What fills the frame at first: the saved template with made-up values."""
    saved = await _found(visit)
    draft = Draft(subject=saved.subject, text=saved.text, html=saved.html, values=_samples(templates.names(saved)))
    return await _document(visit, draft, visit.query.part)


async def show_draft(visit: visits.Visit) -> routing.Answer:
    """What fills the frame later: what is in the editor, or the sentence of what is wrong with it."""
    draft: Draft = visit.form
    return await _document(visit, draft, draft.part)


async def _document(visit: visits.Visit, draft: Draft, part: Part | None) -> routing.Answer:
    with turns.taken(visit.ctx, PREVIEWS, visit.account_id):
        return await _shown(visit, draft, part)


async def _shown(visit: visits.Visit, draft: Draft, part: Part | None) -> routing.Answer:
    try:
        rendered, problem = await asyncio.to_thread(draft.render), None
    except errors.PostroadError as refusal:
        rendered, problem = templates.Rendered("", None, None), refusal.message
    wants_text = part == "text" or (part is None and not rendered.html)
    text = (rendered.text or "")[: previews.TEXT_CHARACTERS] if wants_text else None
    values = {"problem": problem, "subject": rendered.subject, "text": text, "has_html": rendered.html is not None}
    head = visit.site.pages.render("parts/template_preview.html", values)
    body = b"" if wants_text or rendered.html is None else await previews.of_html(rendered.html)
    return routing.Answer(200, head + body, headers=previews.DOCUMENT_HEADERS, content_type=previews.DOCUMENT_TYPE)


async def _editor(visit: visits.Visit, draft: Draft, *, saved: stored.Template | None) -> dict[str, Any]:
    may_send = visit.may(caller.Permission.SEND)
    senders = await trying_out.senders(visit.ctx, visit.account_id, most=MOST_SENDERS) if may_send and saved else []
    example = _example(saved, sender=senders[0] if senders else SENDER) if saved else ""
    return {"draft": draft, "saved": saved, "senders": senders, "example": example, "sent": None}


async def _save(visit: visits.Visit, alias: str, draft: Draft) -> routing.Answer:
    await templates.put(
        visit.ctx, visit.account_id, alias, subject=draft.subject or "", text=draft.text, html=draft.html
    )
    return visit.go(f"{PATH}/{alias}", notice=f"The template {alias} is saved.")


async def _found(visit: visits.Visit) -> stored.Template:
    return await templates.find(visit.ctx, visit.account_id, visit.request.path["alias"])


async def _is_taken(visit: visits.Visit, alias: str) -> bool:
    try:
        await templates.find(visit.ctx, visit.account_id, alias)
    except errors.NotFound:
        return False
    return True


def _samples(names: list[str]) -> str:
    return json.dumps(_made_up(names), indent=2)


def _made_up(names: list[str]) -> dict[str, str]:
    """A value for each name, so that there is something to see: the name itself, as words."""
    return {name: _SEPARATORS.sub(" ", name).strip() or name for name in names}


def _example(saved: stored.Template, *, sender: str) -> str:
    message = {"from": sender, "to": RECIPIENT, "template": saved.alias}
    variables = _made_up(templates.names(saved)[: limits.VARIABLES])
    return json.dumps({**message, "variables": variables} if variables else message, indent=2)


def _variables(text: str | None) -> dict[str, mail.TemplateValue]:
    try:
        return msgspec.convert(strict_json.read((text or "{}").encode()), dict[str, mail.TemplateValue])
    except strict_json.NotJson as problem:
        raise errors.InvalidRequest(f"values: {problem}") from None
    except msgspec.ValidationError:
        raise errors.InvalidRequest("values: give a JSON object of texts, numbers, true and false") from None


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The list, the editor and its frame."""
    one = f"{PATH}/{{alias}}"
    return (
        visits.look(site, PATH, index, query=Query),
        visits.change(site, PATH, make, form=Draft, body_limit=FORM_BYTES),
        visits.look(site, "/template/new", begin, permission=caller.Permission.CHANGE),
        visits.change(site, "/template/preview", show_draft, form=Draft, permission=visits.VIEW, body_limit=FORM_BYTES),
        visits.look(site, one, show),
        visits.change(site, one, save, form=Draft, body_limit=FORM_BYTES),
        visits.look(site, f"{one}/preview", show_saved, query=PartQuery),
        visits.change(site, f"{one}/remove", remove),
        visits.change(
            site, f"{one}/test", send_test, form=Draft, permission=caller.Permission.SEND, body_limit=FORM_BYTES
        ),
    )
