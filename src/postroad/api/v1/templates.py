"""`/v1/templates`: the templates of the account, with preview."""

from typing import Annotated, Final

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.mail.accept import validation
from postroad.model.mail import limits, statuses
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.protocol.mime import header_fields
from postroad.services.messages import lookup
from postroad.services.templates import templates
from postroad.storage.mail import templates as stored
from postroad.web import routing

ALIAS_PATTERN: Final = f"^{limits.TEMPLATE_ALIAS_PATTERN}$"
RESOURCE: Final = resource.Resource("Templates", {"alias": ALIAS_PATTERN})
# That sections are closed is beyond a pattern; `protocol/text/mustache.py` checks it.
BODY_PATTERN: Final = r"^[^\x00]*$"

Body = Annotated[str, msgspec.Meta(max_length=templates.BODY_CHARACTERS, extra_json_schema={"pattern": BODY_PATTERN})]


class Template(msgspec.Struct, frozen=True):
    """A template. `placeholders` are the names that need a value."""

    id: str
    alias: str
    subject: str
    text: str | None
    html: str | None
    placeholders: list[str]
    created_at: times.WireTime
    updated_at: times.WireTime
    layout: str | msgspec.UnsetType = msgspec.UNSET


class TemplateSummary(msgspec.Struct, frozen=True):
    """A template without its bodies."""

    id: str
    alias: str
    subject: str
    has_text: bool
    has_html: bool
    created_at: times.WireTime
    updated_at: times.WireTime


class TemplateRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A template to save. At least one of `text` and `html` is required.

    The language is Mustache: `{{name}}` for a value, `{{#items}}…{{/items}}` for each item of a list or if a value is
    true, `{{^items}}…{{/items}}` if it is false or empty, and `{{> footer}}` for another template.
    """

    subject: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=limits.SUBJECT_CHARACTERS,
            extra_json_schema={"pattern": header_fields.VALUE_PATTERN},
        ),
    ]
    text: Body | None = None
    html: Body | None = None
    layout: (
        Annotated[
            str,
            msgspec.Meta(
                description="Alias of the layout: a template with `{{> content}}`.",
                extra_json_schema={"pattern": ALIAS_PATTERN},
            ),
        ]
        | None
    ) = None


BODY_RULES: Final = {
    "anyOf": [
        {"required": [member], "properties": {member: {"type": "string", "minLength": 1}}}
        for member in ("text", "html")
    ],
    "examples": [{"subject": "Welcome, {{name}}", "text": "Hello {{name}}!", "html": "<p>Hello {{name}}!</p>"}],
}


class TemplateResponse(resource.Response, frozen=True):
    """One template."""

    template: Template


class TemplatesQuery(resource.PageQuery, frozen=True):
    """Pagination of the list."""

    cursor: Annotated[str, resource.cursor_of(ALIAS_PATTERN)] | None = None


class TemplatesResponse(resource.Response, frozen=True):
    """Templates, ordered by alias."""

    templates: list[TemplateSummary]
    next_cursor: resource.NextCursor


class PreviewRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values for the placeholders."""

    variables: Annotated[dict[str, statuses.TemplateValue], msgspec.Meta(max_length=limits.VARIABLES)] | None = None


class PreviewResponse(resource.Response, frozen=True):
    """The rendered template."""

    subject: str
    text: str | None
    html: str | None


async def _template(ctx: context.Context, row: stored.Template) -> Template:
    layout = row.layout or msgspec.UNSET
    return resource.from_record(Template, row, placeholders=await templates.names(ctx, row), layout=layout)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List templates.

    Ordered by alias, without the bodies.
    """
    query: TemplatesQuery = request.query
    after = "" if query.cursor is None else validation.check_alias("cursor", query.cursor)
    found = await templates.summaries(ctx, request.caller.account_id, after, query.rows + 1)
    rows, following = identifiers.page(found, limit=query.rows, key="alias")
    hidden = {} if request.caller.sees_content else {"subject": lookup.HIDDEN_SUBJECT}
    shown = [resource.from_record(TemplateSummary, row, **hidden) for row in rows]
    return routing.Response(200, TemplatesResponse(shown, following, request_id=request.id))


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a template.

    With its bodies, and the names of the placeholders that need a value.
    """
    found = await templates.find(ctx, request.caller.account_id, request.path["alias"])
    return routing.Response(200, TemplateResponse(await _template(ctx, found), request_id=request.id))


async def save(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create or replace a template.

    An empty `text` or `html` counts as absent. Placeholders are checked when the template is saved, and what it uses
    must exist. It is published at once.
    """
    body: TemplateRequest = request.body
    saved = await templates.put(
        ctx,
        request.caller.account_id,
        request.path["alias"],
        subject=body.subject,
        text=body.text,
        html=body.html,
        layout=None if body.layout is None else validation.check_alias("layout", body.layout),
    )
    # RFC 9110 section 9.3.4: 201 when the request created it.
    status = 201 if saved.created_at == saved.updated_at else 200
    return routing.Response(status, TemplateResponse(await _template(ctx, saved), request_id=request.id))


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove a template.

    Messages that were accepted with it are not affected. A layout or part that another template uses is kept: 409.
    """
    await templates.remove(ctx, request.caller.account_id, request.path["alias"])
    return routing.Response(204)


async def preview(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Render a template without sending it.

    A placeholder without a value is an error; a value without a placeholder is ignored.
    """
    body: PreviewRequest = request.body
    rendered = await templates.preview(ctx, request.caller.account_id, request.path["alias"], body.variables or {})
    return routing.Response(200, resource.from_record(PreviewResponse, rendered, request_id=request.id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/templates", index, query=TemplatesQuery, responses={200: TemplatesResponse}),
    RESOURCE.route(
        "GET /v1/templates/{alias}", show, permission=callers.Permission.CONTENT, responses={200: TemplateResponse}
    ),
    RESOURCE.route(
        "PUT /v1/templates/{alias}",
        save,
        body=TemplateRequest,
        body_rules=BODY_RULES,
        responses={200: TemplateResponse, 201: TemplateResponse},
        errors=(errors.Conflict,),
    ),
    RESOURCE.route("DELETE /v1/templates/{alias}", remove, responses={204: None}, errors=(errors.Conflict,)),
    RESOURCE.route(
        "POST /v1/templates/{alias}/preview",
        preview,
        permission=callers.Permission.CONTENT,
        body=PreviewRequest,
        body_rules={"examples": [{"variables": {"name": "Ada"}}]},
        responses={200: PreviewResponse},
        errors=(errors.NotFound,),
    ),
)
