"""Tools about templates: list, preview, and send one to recipients, who each get a separate message.

An agent sends templates only: their wording is the account's. What the key may send is decided by `POST /emails/batch`.
"""

from typing import Annotated, Final

import msgspec

from postroad.model.mail import limits, send_request, statuses
from postroad_mcp import api_calls, tool, untrusted_text

Alias = Annotated[str, msgspec.Meta(description="The alias of a template.", max_length=255)]
Variables = Annotated[
    dict[str, statuses.TemplateValue],
    msgspec.Meta(description="Values for the placeholders.", max_length=limits.VARIABLES),
]


class ListInput(tool.Input, frozen=True, kw_only=True):
    """Which page."""

    cursor: Annotated[str | None, msgspec.Meta(description="`next_cursor` of the previous page.")] = None


class TemplateEntry(msgspec.Struct, frozen=True):
    """A template in the list."""

    alias: str
    subject: untrusted_text.UntrustedText
    updated_at: str


class ListResult(msgspec.Struct, frozen=True):
    """Templates by alias."""

    templates: list[TemplateEntry]
    next_cursor: str | None


class PreviewInput(tool.Input, frozen=True, kw_only=True):
    """Which template, with which values."""

    template: Alias
    variables: Variables = msgspec.field(default_factory=dict)


class PreviewResult(msgspec.Struct, frozen=True, kw_only=True):
    """The rendered template."""

    subject: untrusted_text.UntrustedText
    text: untrusted_text.UntrustedText | None
    html: untrusted_text.UntrustedText | None


class Recipient(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One recipient."""

    to: Annotated[str, msgspec.Meta(description="An address: `ada@example.net`.", max_length=320)]
    variables: Variables = msgspec.field(default_factory=dict)


class SendInput(tool.Input, frozen=True, kw_only=True):
    """What to send."""

    template: Alias
    sender: Annotated[
        str, msgspec.Meta(description="The sender, of a verified domain: `Shop <hello@example.com>`.", max_length=998)
    ] = msgspec.field(name="from")
    recipients: Annotated[list[Recipient], msgspec.Meta(min_length=1, max_length=send_request.MAX_RECIPIENTS)]
    idempotency_key: Annotated[
        str,
        msgspec.Meta(
            description="A new value for each send, and the same value to repeat a call whose result was lost: with a "
            "repeated key, nothing is sent twice.",
            min_length=1,
            max_length=limits.IDEMPOTENCY_KEY_CHARACTERS,
            pattern="^[!-~]+$",
        ),
    ]
    dry_run: Annotated[
        bool,
        msgspec.Meta(
            description="Send nothing: render the template for the first recipient. Needs the scope templates too. "
            "Domain and limits are only checked by a real send."
        ),
    ] = False


class SentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The message of one recipient."""

    to: str
    id: str


class SendResult(msgspec.Struct, frozen=True, kw_only=True):
    """The message of each recipient; or of a dry run, the preview."""

    state: Annotated[str, msgspec.Meta(description="`accepted` or `dry_run`")]
    messages: list[SentMessage]
    preview: PreviewResult | None = None


async def list_templates(api: api_calls.Api, given: ListInput) -> ListResult:
    """The templates of the account."""
    found = await api_calls.call(api, "GET", "/v1/templates", query=msgspec.to_builtins(given))
    rows = [
        TemplateEntry(row["alias"], untrusted_text.mark(row["subject"]), row["updated_at"])
        for row in found["templates"]
    ]
    return ListResult(rows, found["next_cursor"])


async def preview(api: api_calls.Api, given: PreviewInput) -> PreviewResult:
    """A template with values."""
    path = f"/v1/templates/{api_calls.segment(given.template)}/preview"
    found = await api_calls.call(api, "POST", path, body={"variables": given.variables})
    return PreviewResult(
        subject=untrusted_text.mark(found["subject"]),
        text=untrusted_text.mark_body(found["text"]),
        html=untrusted_text.mark_body(found["html"]),
    )


async def send(api: api_calls.Api, given: SendInput) -> SendResult:
    """Send a template, a separate message for each recipient."""
    if given.dry_run:
        first = PreviewInput(template=given.template, variables=given.recipients[0].variables)
        return SendResult(state="dry_run", messages=[], preview=await preview(api, first))
    body = {
        "from": given.sender,
        "template": given.template,
        "recipients": [msgspec.to_builtins(recipient) for recipient in given.recipients],
        # A partial send would be hard to explain to the user, and to repeat.
        "all_or_nothing": True,
    }
    answer = await api_calls.call(api, "POST", "/emails/batch", body=body, key=given.idempotency_key)
    pairs = zip(given.recipients, answer["results"], strict=True)
    sent = [SentMessage(to=untrusted_text.escape(recipient.to), id=item["id"]) for recipient, item in pairs]
    return SendResult(state="accepted", messages=sent)


TOOLS: Final = (
    tool.Tool(
        name="list_templates",
        title="List templates",
        description="List the templates of this account. Needs an API key with the scope templates.",
        arguments=ListInput,
        result=ListResult,
        run=list_templates,
    ),
    tool.Tool(
        name="preview_template",
        title="Preview a template",
        description="Render a template with variables, without sending it. A missing variable is an error that names "
        "it. Needs an API key with the scope templates.",
        arguments=PreviewInput,
        result=PreviewResult,
        run=preview,
    ),
    tool.Tool(
        name="send_template",
        title="Send a template",
        description="Send a template to up to 500 recipients, each of whom gets a separate message: to all of them, or "
        "to none if one is refused. Sent mail cannot be recalled: ask the user first, or use dry_run. Needs an API key "
        "with the scope send; the limits of the key (templates, domains, recipients per day, budget) apply. Above its "
        "approval limit a person has to approve the request: call again later with the same idempotency_key.",
        arguments=SendInput,
        result=SendResult,
        run=send,
        is_read_only=False,
        is_destructive=True,
    ),
)
