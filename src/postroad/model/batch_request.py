"""The batch request: several complete send requests, or one template for many recipients.

The members of the second form are those of a send request, so they are taken from there: an option that a single send
gets exists for a batch too. `expand` turns both forms into send requests.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from postroad import errors
from postroad.model import mail, send_request

MAX_EMAILS: Final = 100
MAX_RECIPIENTS: Final = 500
# Of one recipient, or not for messages from a template.
_OWN: Final = frozenset({"to", "cc", "bcc", "text", "html", "variables"})
_MEMBERS: Final = msgspec.structs.fields(send_request.SendRequest)
_TYPES: Final[Mapping[str, Any]] = {member.name: member.type for member in _MEMBERS}
# Python name and wire name of what all messages of a template have in common.
COMMON: Final = {member.name: member.encode_name for member in _MEMBERS if member.name not in _OWN}


class BatchRecipient(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One recipient of a template: a message of its own, which no other recipient sees."""

    to: send_request.Address
    variables: Annotated[
        Mapping[str, mail.TemplateValue] | None,
        msgspec.Meta(description="Values for the placeholders of the template."),
    ] = None
    metadata: Annotated[
        Mapping[send_request.MetadataKey, send_request.MetadataValue] | None,
        msgspec.Meta(description="Added to the `metadata` of the batch; takes precedence over it."),
    ] = None


Emails = Annotated[
    tuple[send_request.SendRequest, ...],
    msgspec.Meta(min_length=1, max_length=MAX_EMAILS, description=f"Up to {MAX_EMAILS} complete send requests."),
]
Recipients = Annotated[
    tuple[BatchRecipient, ...],
    msgspec.Meta(
        min_length=1,
        max_length=MAX_RECIPIENTS,
        description=f"Up to {MAX_RECIPIENTS} recipients of `template`, each of whom gets a message of their own.",
    ),
]
AllOrNothing = Annotated[
    bool,
    msgspec.Meta(description="Whether one refused item refuses the whole batch. Otherwise the others are accepted."),
]
BatchRequest = msgspec.defstruct(
    "BatchRequest",
    [
        ("emails", Emails | None, None),
        ("recipients", Recipients | None, None),
        ("all_or_nothing", AllOrNothing | None, None),
        *((name, _TYPES[name] | None, msgspec.field(name=wire, default=None)) for name, wire in COMMON.items()),
    ],
    namespace={
        "__doc__": "Several messages: `emails`, or `recipients` with `template`, `from` and what they have in common."
    },
    module=__name__,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
)


class Expanded(msgspec.Struct, frozen=True):
    """The send requests of a batch in order; `member` names their list in the request."""

    member: str
    requests: Sequence[send_request.SendRequest]
    all_or_nothing: bool


def expand(request: msgspec.Struct) -> Expanded:
    """The send requests of a `BatchRequest`. Raises InvalidRequest for a mixture of its forms."""
    given = {name: value for name, value in msgspec.structs.asdict(request).items() if value is not None}
    all_or_nothing = bool(given.pop("all_or_nothing", False))
    emails, recipients = given.pop("emails", None), given.pop("recipients", None)
    if (emails is None) == (recipients is None):
        raise errors.InvalidRequest("body: give either emails, or recipients with template")
    if emails is not None:
        if given:
            wire = COMMON[next(iter(given))]
            raise errors.InvalidRequest(f"{wire}: not allowed beside emails; set it in each of them")
        return Expanded("emails", emails, all_or_nothing)
    for name in ("template", "sender"):
        if name not in given:
            raise errors.InvalidRequest(f"{COMMON[name]}: required with recipients")
    shared = given.pop("metadata", {})
    return Expanded(
        "recipients",
        [
            send_request.SendRequest(
                **given, to=one.to, variables=one.variables, metadata={**shared, **(one.metadata or {})}
            )
            for one in recipients
        ],
        all_or_nothing,
    )
