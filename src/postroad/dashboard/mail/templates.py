"""`/templates`: the list, the editor with its live preview, and the versions. Drafts are sent once published."""

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from postroad import errors
from postroad.dashboard.framework import forms, lists, requests
from postroad.dashboard.mail import previews as previews_pages
from postroad.mail.accept import rendering, validation
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.protocol.text import mustache, placeholders, sample_values, strict_json
from postroad.services import usage_limits
from postroad.services.messages import previews, sample_send
from postroad.services.templates import starters, template_drafts, templates
from postroad.storage.mail import templates as stored
from postroad.web import routing

PATH: Final = "/templates"
ONE: Final = f"{PATH}/{{alias}}"
NEW: Final = "/template/new"
ROWS: Final = 50
# Text and HTML of maximum length, with four percent-encoded octets per character; and the values.
FORM_BYTES: Final = 2 * 12 * templates.BODY_CHARACTERS + 512 * 1024
# Of test values, as typed and as kept: as many as fit beside the bodies. Indented, nested lists grow many times.
VALUES_CHARACTERS: Final = 128 * 1024
# An editor has one preview in progress, which takes a few hundredths of a second.
PREVIEWS: Final = usage_limits.WorkLimit("previews", per_account=4, per_process=8, retry_seconds=1)
# The longest list of senders to choose from.
MAX_SENDERS: Final = 20
# And of layouts; nobody has more than a few.
MAX_LAYOUTS: Final = 100
# In the example, for an account without a domain.
SENDER: Final = "hello@example.com"
RECIPIENT: Final = "ada@example.net"
# What the preview of a layout has in the place of the content, in its text and its HTML.
SAMPLE_CONTENT: Final = "This is where the content of a message goes."
Part = Literal["html", "text"]


class PartQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    part: Part | None = None


class Draft(forms.Form, frozen=True, kw_only=True):
    """The content of the editor. `values` is a JSON object of test values."""

    alias: str | None = None
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    values: str | None = None
    part: Part | None = None
    scheme: previews_pages.Scheme | None = None
    width: previews_pages.Width | None = None
    sender: str | None = None
    to: str | None = None
    layout: str | None = None

    def content(self) -> templates.Content:
        """What is saved; test values that are not JSON, or too long, are not kept."""
        try:
            sample = _written(_variables(self.values))
        except errors.InvalidRequest:
            sample = None
        layout = (self.layout or "").strip() or None
        return templates.Content(self.subject or "", self.text or None, self.html or None, layout, sample)


async def index(request: requests.PageRequest) -> routing.Response:
    query: lists.Query = request.query
    # PostgreSQL cannot store NUL, and no alias has one.
    after = (query.after or "").replace("\0", "")
    found = await templates.summaries(request.ctx, request.account_id, after, ROWS + 1, is_published=False)
    rows, next_cursor = identifiers.page(found, limit=ROWS, key="alias")
    return request.page("templates.html", rows=rows, next_cursor=next_cursor, is_first=not after)


async def gallery(request: requests.PageRequest) -> routing.Response:
    """What a new template can start from."""
    return request.page("template_starters.html", starters=[(name, starters.find(name)) for name in starters.NAMES])


async def new(request: requests.PageRequest) -> routing.Response:
    name = request.path["starter"]
    alias = None if name == starters.NAMES[0] else name
    draft = msgspec.structs.replace(_of_content(starters.content(starters.find(name))), alias=alias)
    return request.page("template.html", **await _editor(request, draft, saved=None))


async def show_starter(request: requests.PageRequest) -> routing.Response:
    """A picture of it, for the gallery."""
    return await _picture(request, _of_content(starters.content(starters.find(request.path["starter"]))))


async def create(request: requests.PageRequest) -> routing.Response:
    """Save the draft of a new template; an existing one is not replaced."""
    draft: Draft = request.form
    alias = draft.alias or ""
    await template_drafts.save(request.ctx, request.account_id, alias, draft.content(), is_new=True)
    return _saved(request, alias)


async def create_published(request: requests.PageRequest) -> routing.Response:
    """The same, and send it from now on."""
    draft: Draft = request.form
    alias = draft.alias or ""
    await templates.save(request.ctx, request.account_id, alias, draft.content(), is_new=True)
    return _published(request, alias)


async def show(request: requests.PageRequest) -> routing.Response:
    """The editor with the draft of a template or, without one, what is published."""
    saved = await _found(request)
    return request.page("template.html", **await _editor(request, await _latest(request, saved), saved=saved))


async def save(request: requests.PageRequest) -> routing.Response:
    alias, draft = (await _found(request)).alias, request.form
    await template_drafts.save(request.ctx, request.account_id, alias, draft.content())
    return _saved(request, alias)


async def publish(request: requests.PageRequest) -> routing.Response:
    """Save what is in the editor, and send it from now on."""
    alias, draft = (await _found(request)).alias, request.form
    await templates.save(request.ctx, request.account_id, alias, draft.content())
    return _published(request, alias)


def _saved(request: requests.PageRequest, alias: str) -> routing.Response:
    return request.redirect(f"{PATH}/{alias}", notice=f"Draft of {alias} saved. Publish it to send it.")


def _published(request: requests.PageRequest, alias: str) -> routing.Response:
    return request.redirect(f"{PATH}/{alias}", notice=f"Template {alias} published.")


async def duplicate(request: requests.PageRequest) -> routing.Response:
    copy = await template_drafts.duplicate(request.ctx, request.account_id, request.path["alias"])
    return request.redirect(f"{PATH}/{copy.alias}", notice=f"Template {copy.alias} created as a copy.")


async def remove(request: requests.PageRequest) -> routing.Response:
    alias = request.path["alias"]
    await templates.remove(request.ctx, request.account_id, alias)
    return request.redirect(PATH, notice=f"Template {alias} removed.")


async def send_draft(request: requests.PageRequest) -> routing.Response:
    """Send the content of the editor, saved or not."""
    saved, draft = await _found(request), request.form
    accepted = await sample_send.send_rendered(
        request.ctx,
        request.http.caller,
        await _rendered(request, draft, content=None),
        sender=draft.sender or "",
        to=draft.to or request.user.email,
        request_id=request.http.id,
    )
    values = await _editor(request, draft, saved=saved)
    return request.page("template.html", status=202, **{**values, "sent": accepted.message_id})


async def show_saved(request: requests.PageRequest) -> routing.Response:
    """The first preview: what the editor opens with."""
    return await _document(request, await _latest(request, await _found(request)), request.query.part)


async def show_picture(request: requests.PageRequest) -> routing.Response:
    """A picture of a template, for the list."""
    return await _picture(request, await _latest(request, await _found(request)))


async def show_draft(request: requests.PageRequest) -> routing.Response:
    draft: Draft = request.form
    return await _document(request, draft, draft.part)


async def check(request: requests.PageRequest) -> routing.Response:
    """The mistakes in the editor's content, each with its field and place; without any, its test values."""
    draft: Draft = request.form
    sources = {"subject": draft.subject or "", "text": draft.text or "", "html": draft.html or ""}
    with usage_limits.acquire(request.ctx, PREVIEWS, request.account_id):
        found = await request.ctx.threads.run(request.account_id, functools.partial(_problems, sources))
        values = None if found else await _values(request, draft)
    answer = msgspec.json.encode({"problems": found, "values": values})
    return routing.Response(200, answer, content_type="application/json")


def _problems(sources: Mapping[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for field, source in sources.items():
        try:
            mustache.parse(source)
        except placeholders.SyntaxProblem as problem:
            place = {"line": problem.line, "column": problem.column}
            found.append({"field": field, **place, "message": str(problem)})
    return found


async def _document(request: requests.PageRequest, draft: Draft, part: Part | None) -> routing.Response:
    with usage_limits.acquire(request.ctx, PREVIEWS, request.account_id):
        return await _shown(request, draft, part)


async def _picture(request: requests.PageRequest, draft: Draft) -> routing.Response:
    """A page asks for many at once, so each waits for its turn."""
    async with request.ctx.previews.hold(request.account_id):
        return await _shown(request, draft, None, is_picture=True)


async def _shown(
    request: requests.PageRequest, draft: Draft, part: Part | None, *, is_picture: bool = False
) -> routing.Response:
    try:
        rendered, problem = await _rendered(request, draft, content=SAMPLE_CONTENT), None
    except errors.PostroadError as refusal:
        rendered, problem = rendering.Rendered("", None, None), refusal.message
    wants_text = part == "text" or (part is None and not rendered.html)
    text = (rendered.text or "")[: previews.TEXT_CHARACTERS] if wants_text else None
    subject = None if is_picture else rendered.subject
    values = {"problem": problem, "subject": subject, "text": text, "has_html": rendered.html is not None}
    head = request.site.pages.render("parts/template_preview.html", values)
    body = (
        b""
        if wants_text or rendered.html is None
        else await previews.of_html(
            request.ctx, request.account_id, rendered.html, is_dark=draft.scheme is previews_pages.Scheme.DARK
        )
    )
    return routing.Response(200, head + body, headers=previews.DOCUMENT_HEADERS, content_type=previews.DOCUMENT_TYPE)


async def _rendered(request: requests.PageRequest, draft: Draft, *, content: str | None) -> rendering.Rendered:
    """The draft with its test values, in a thread: it may have many placeholders, or loop over lists."""
    template = await templates.prepare(request.ctx, request.account_id, draft.content())
    variables = await _filled(request, draft, template)
    work = functools.partial(rendering.render, template, variables, content=content)
    return await request.ctx.threads.run(request.account_id, work)


async def _filled(request: requests.PageRequest, draft: Draft, template: stored.Template) -> dict[str, Any]:
    """The test values of a draft, and samples of those that it lacks."""
    given = _variables(draft.values)
    validation.check_variables("values", given)
    now = request.ctx.clock()

    def fill() -> dict[str, Any]:
        return sample_values.fill(given, templates.sample(template, now=now))

    return await request.ctx.threads.run(request.account_id, fill)


async def _values(request: requests.PageRequest, draft: Draft) -> dict[str, Any] | None:
    """The same, unless the draft cannot be shown."""
    try:
        template = await templates.prepare(request.ctx, request.account_id, draft.content())
        return await _filled(request, draft, template)
    except errors.PostroadError:
        return None


async def _editor(request: requests.PageRequest, draft: Draft, *, saved: stored.Template | None) -> dict[str, Any]:
    may_send = request.may(callers.Permission.SEND)
    senders = (
        await sample_send.senders(request.ctx, request.account_id, limit=MAX_SENDERS) if may_send and saved else []
    )
    example = ""
    if saved and saved.is_published:
        sender, now = senders[0] if senders else SENDER, request.ctx.clock()
        work = functools.partial(_example, saved, sender=sender, now=now)
        example = await request.ctx.threads.run(request.account_id, work)
    if values := _written(await _values(request, draft)):
        draft = msgspec.structs.replace(draft, values=values)
    latest = await template_drafts.latest(request.ctx, saved) if saved else None
    shown = {"draft": draft, "saved": saved, "latest": latest, "is_draft": template_drafts.is_draft(latest)}
    return {**shown, "senders": senders, "example": example, "layouts": await _layouts(request, draft), "sent": None}


async def _layouts(request: requests.PageRequest, draft: Draft) -> list[tuple[str, str]]:
    """The layouts to choose from, and the one that was chosen."""
    found = await templates.layouts(request.ctx, request.account_id, MAX_LAYOUTS)
    return [("", "None"), *((alias, alias) for alias in sorted({*found, *filter(None, [draft.layout])}))]


async def _found(request: requests.PageRequest) -> stored.Template:
    return await templates.find_any(request.ctx, request.account_id, request.path["alias"])


async def _latest(request: requests.PageRequest, saved: stored.Template) -> Draft:
    """What was saved last, with its test values; an operator who views the account sees samples."""
    latest = await template_drafts.latest(request.ctx, saved)
    content = templates.content_of(latest if latest and template_drafts.is_draft(latest) else saved)
    values = latest.sample if latest is not None and request.view is None else None
    return _of_content(dataclasses.replace(content, sample=values))


def _of_content(content: templates.Content) -> Draft:
    return Draft(
        subject=content.subject, text=content.text, html=content.html, layout=content.layout, values=content.sample
    )


def _example(saved: stored.Template, *, sender: str, now: int) -> str:
    message = {"from": sender, "to": RECIPIENT, "template": saved.alias}
    variables = templates.example(saved, now=now)
    return json.dumps({**message, "variables": variables} if variables else message, indent=2)


def _written(values: Mapping[str, Any] | None) -> str | None:
    """Test values as people read them; None if there are none, or too many to edit: a short text can have thousands."""
    written = msgspec.json.format(msgspec.json.encode(values), indent=2).decode()
    return written if values is not None and len(written) <= VALUES_CHARACTERS else None


def _variables(text: str | None) -> dict[str, statuses.TemplateValue]:
    if len(text or "") > VALUES_CHARACTERS:
        raise errors.InvalidRequest(f"values: at most {VALUES_CHARACTERS} characters")
    try:
        return msgspec.convert(strict_json.read((text or "{}").encode()), dict[str, statuses.TemplateValue])
    except strict_json.JsonError as problem:
        raise errors.InvalidRequest(f"values: {problem}") from None
    except msgspec.ValidationError:
        raise errors.InvalidRequest(
            "values: must be a JSON object of strings, numbers, booleans, lists and objects"
        ) from None


ROUTES: Final = (
    requests.get(PATH, index, query=lists.Query),
    requests.post(PATH, create, form=Draft, body_limit=FORM_BYTES),
    requests.post("/template/publish", create_published, form=Draft, body_limit=FORM_BYTES),
    requests.get(NEW, gallery, permission=callers.Permission.CHANGE),
    requests.get(f"{NEW}/{{starter}}", new, permission=callers.Permission.CHANGE),
    requests.get(f"{NEW}/{{starter}}/picture", show_starter, permission=callers.Permission.CHANGE),
    requests.post("/template/check", check, form=Draft, body_limit=FORM_BYTES),
    requests.post("/template/preview", show_draft, form=Draft, permission=requests.CONTENT, body_limit=FORM_BYTES),
    requests.get(ONE, show, permission=requests.CONTENT),
    requests.post(ONE, save, form=Draft, body_limit=FORM_BYTES),
    requests.get(f"{ONE}/preview", show_saved, query=PartQuery, permission=requests.CONTENT),
    requests.get(f"{ONE}/picture", show_picture, permission=requests.CONTENT),
    requests.post(f"{ONE}/publish", publish, form=Draft, body_limit=FORM_BYTES),
    requests.post(f"{ONE}/duplicate", duplicate),
    requests.post(f"{ONE}/remove", remove),
    requests.post(f"{ONE}/test", send_draft, form=Draft, permission=callers.Permission.SEND, body_limit=FORM_BYTES),
)


VERSIONS_PATH: Final = f"{ONE}/versions"
# More than any number of a version has.
MAX_DIGITS: Final = 9


class VersionsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which versions are compared: the numbers of an older and a newer one."""

    old: str | None = None
    new: str | None = None


async def show_versions(request: requests.PageRequest) -> routing.Response:
    """The versions, and the difference of two: of those that are asked for, or of the latest and the one before."""
    template = await _found(request)
    alias = request.path["alias"]
    history = await template_drafts.history(request.ctx, request.account_id, alias)
    numbers = [version.number for version in history]
    query: VersionsQuery = request.query
    new = _version_query(query.new) if query.new else next(iter(numbers), 0)
    old = _version_query(query.old) if query.old else max((number for number in numbers if number < new), default=0)
    differences = None
    if old and new:
        before, after = [
            await template_drafts.find(request.ctx, request.account_id, alias, version) for version in (old, new)
        ]
        work = functools.partial(template_drafts.differences, before, after)
        differences = await request.ctx.threads.run(request.account_id, work)
    return request.page(
        "template_versions.html", template=template, history=history, old=old, new=new, differences=differences
    )


async def restore(request: requests.PageRequest) -> routing.Response:
    alias, number = request.path["alias"], _version_number(request.path["number"])
    await template_drafts.restore(request.ctx, request.account_id, alias, number)
    return request.redirect(f"{PATH}/{alias}", notice=f"Version {number} restored as a draft.")


def _version_query(text: str) -> int:
    try:
        return _version_number(text)
    except errors.NotFound:
        raise errors.InvalidRequest("choose the versions to compare by their numbers") from None


def _version_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise errors.NotFound("no such version of this template")
    return int(text)


VERSION_ROUTES: Final = (
    requests.get(VERSIONS_PATH, show_versions, query=VersionsQuery, permission=requests.CONTENT),
    requests.post(f"{VERSIONS_PATH}/{{number}}/restore", restore),
)
