"""`/templates`: the templates of the account. They have an alias and no other name, and no layouts."""

import functools
import re
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.mail.accept import rendering
from postroad.model.mail import limits
from postroad.model.people import callers
from postroad.protocol.text import mustache, placeholders
from postroad.services.templates import templates
from postroad.storage.mail import templates as stored
from postroad.web import routing
from postroad_postmark import error_shape, numbers, schemas, translation

_PAGE: Final = 500
_NOT_IN_ALIAS: Final = re.compile(r"[^a-z0-9_-]+")
# A part for a draft in which only another part is checked.
_ANY: Final = "x"
# Some ten milliseconds of work at most.
_INLINE_CHARACTERS: Final = 16 * 1024


class Template(schemas.Body, frozen=True):
    """A template to create, or what to change of one."""

    name: str | None = None
    alias: str | None = None
    subject: str | None = None
    html_body: str | None = None
    text_body: str | None = None
    template_type: str | None = None
    layout_template: str | None = None


class Draft(schemas.Body, frozen=True):
    """A template to validate."""

    subject: str | None = None
    html_body: str | None = None
    text_body: str | None = None
    test_render_model: dict[str, Any] | None = None
    inline_css: bool | None = msgspec.field(name="InlineCssForHtmlTestRender", default=None)
    template_type: str | None = None
    layout_template: str | None = None


class TemplatesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A page of the list, in both spellings that Postmark's packages use."""

    count: schemas.Count | None = None
    offset: schemas.Offset | None = None
    Count: schemas.Count | None = None
    Offset: schemas.Offset | None = None
    TemplateType: str | None = None
    LayoutTemplate: str | None = None


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List templates by alias."""
    query: TemplatesQuery = request.query
    found: list[stored.Summary] = []
    after = ""
    while page := await templates.summaries(ctx, request.caller.account_id, after, _PAGE):
        found += page
        after = page[-1].alias
    offset = query.offset or query.Offset or 0
    listed = found[offset : offset + (query.count or query.Count or 100)]
    return extension_api.respond({"TotalCount": len(found), "Templates": [_short(summary) for summary in listed]})


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """One template, by its number or alias."""
    return extension_api.respond(_whole(await _find(ctx, request)))


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a template."""
    body: Template = request.body
    _refuse_layouts(body)
    alias = (
        body.alias or _NOT_IN_ALIAS.sub("-", (body.name or "").lower()).strip("-")[: limits.TEMPLATE_ALIAS_CHARACTERS]
    )
    if not alias:
        raise errors.InvalidRequest("Alias: give Alias, or a Name with letters or digits")
    try:
        await templates.find(ctx, request.caller.account_id, alias)
    except errors.NotFound:
        return await _put(ctx, request, alias, body)
    raise errors.Conflict(f"Alias: the template {alias!r} already exists; edit it, or choose another alias")


async def edit(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change a template; what is not given stays."""
    body: Template = request.body
    _refuse_layouts(body)
    found = await _find(ctx, request)
    if body.alias not in (None, "", found.alias):
        raise errors.InvalidRequest("Alias: cannot be changed; create a template with the new alias")
    merged = Template(
        subject=found.subject if body.subject is None else body.subject,
        html_body=found.html if body.html_body is None else body.html_body,
        text_body=found.text if body.text_body is None else body.text_body,
    )
    return await _put(ctx, request, found.alias, merged, layout=found.layout)


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove a template."""
    found = await _find(ctx, request)
    await templates.remove(ctx, request.caller.account_id, found.alias)
    return extension_api.respond(error_shape.Error(0, f"Template {found.alias} removed."))


async def validate(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Check and render a template that is not saved; one with many placeholders takes some tenths of a second."""
    body: Draft = request.body
    _refuse_layouts(body)
    size = sum(len(source or "") for source in (body.subject, body.html_body, body.text_body))
    work = functools.partial(_validated, body)
    # A small template can loop over the values of a list in a list.
    is_costly = size > _INLINE_CHARACTERS or rendering.has_lists(body.test_render_model or {})
    checked = await ctx.threads.run(request.caller.account_id, work) if is_costly else work()
    return extension_api.respond(checked)


def _validated(body: Draft) -> dict[str, Any]:
    parts = {"Subject": body.subject, "HtmlBody": body.html_body, "TextBody": body.text_body}
    suggested = {name: f"{name}_Value" for source in parts.values() for name in _names(source or "")}
    model = suggested | translation.values(body.test_render_model or {})
    checked = {name: _checked(name, source, model) for name, source in parts.items()}
    is_valid = all(part["ContentIsValid"] for part in checked.values())
    return {"AllContentIsValid": is_valid, **checked, "SuggestedTemplateModel": suggested}


def _checked(name: str, source: str | None, model: dict[str, Any]) -> dict[str, Any]:
    """Whether one part is valid, and what it becomes. One that is not given is valid, and empty."""
    if not source:
        return {"ContentIsValid": True, "ValidationErrors": [], "RenderedContent": ""}
    given = {"subject": _ANY, "text": _ANY, "html": None}
    given[{"Subject": "subject", "HtmlBody": "html", "TextBody": "text"}[name]] = source
    try:
        rendered = templates.render_draft(
            subject=given["subject"] or "", text=given["text"], html=given["html"], variables=model
        )
    except errors.PostroadError as refusal:
        problem = {"Message": refusal.message, "Line": None, "CharacterPosition": None}
        return {"ContentIsValid": False, "ValidationErrors": [problem], "RenderedContent": ""}
    content = {"Subject": rendered.subject, "HtmlBody": rendered.html, "TextBody": rendered.text}[name]
    return {"ContentIsValid": True, "ValidationErrors": [], "RenderedContent": content}


def _names(source: str) -> tuple[str, ...]:
    try:
        return mustache.parse(source).names
    except placeholders.TemplateError:
        return ()


async def _put(
    ctx: context.Context, request: routing.Request, alias: str, body: Template, *, layout: str | None = None
) -> routing.Response:
    saved = await templates.put(
        ctx,
        request.caller.account_id,
        alias,
        subject=body.subject or "",
        text=body.text_body,
        html=body.html_body,
        layout=layout,
    )
    return extension_api.respond(_whole(saved))


async def _find(ctx: context.Context, request: routing.Request) -> stored.Template:
    alias = await numbers.template_alias(ctx, request.caller.account_id, request.path["id"])
    try:
        return await templates.find(ctx, request.caller.account_id, alias)
    except errors.NotFound as refusal:
        raise error_shape.TemplateNotFound(refusal.message) from None


def _refuse_layouts(body: Template | Draft) -> None:
    if body.layout_template or body.template_type not in (None, "", "Standard"):
        raise errors.InvalidRequest("TemplateType: Postroad does not support layouts; put the layout into the template")


def _whole(template: stored.Template) -> dict[str, Any]:
    bodies = {"Subject": template.subject, "HtmlBody": template.html or "", "TextBody": template.text or ""}
    return _short(template) | bodies | {"AssociatedServerId": 0}


def _short(template: stored.Template | stored.Summary) -> dict[str, Any]:
    return {
        "TemplateId": numbers.of(template.id),
        "Name": template.alias,
        "Alias": template.alias,
        "Active": True,
        "TemplateType": "Standard",
        "LayoutTemplate": None,
    }


_SCOPE: Final = callers.Scope.TEMPLATES
ROUTES: Final = (
    extension_api.route(
        "GET /templates", index, query=TemplatesQuery, permission=callers.Permission.CONTENT, scope=_SCOPE
    ),
    extension_api.route("POST /templates", create, body=Template, scope=_SCOPE),
    extension_api.route("POST /templates/validate", validate, body=Draft, scope=_SCOPE),
    extension_api.route("GET /templates/{id}", show, permission=callers.Permission.CONTENT, scope=_SCOPE),
    extension_api.route("PUT /templates/{id}", edit, body=Template, scope=_SCOPE),
    extension_api.route("DELETE /templates/{id}", remove, scope=_SCOPE),
)
