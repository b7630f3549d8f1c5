"""From Postmark's messages to send requests. Pure: templates are looked up before.

A message stream is kept as metadata under `event_format.STREAM`. Models are nested objects, and the placeholders of
our templates are names with dots, so `{"user": {"name": "Ada"}}` is the value of `{{user.name}}`. A list is passed
on, for a section of its name.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from postroad import errors
from postroad.api import extension_api
from postroad.model.mail import limits, send_request, statuses
from postroad.protocol.mime import address, address_lists
from postroad.web import validation_errors
from postroad_postmark import error_shape, event_format, schemas

# Deeper models are a mistake, and would exhaust the stack.
MAX_DEPTH: Final = 16
# A list may have comments in comments, which are read character by character: 400 for each recipient of a message.
MAX_LIST_CHARACTERS: Final = 400 * limits.UNIQUE_RECIPIENTS
# No placeholder has a longer name. That of an object is repeated in the names of all its values.
MAX_NAME_CHARACTERS: Final = 64


def email(given: schemas.Email) -> send_request.SendRequest:
    """The send request of a message with bodies."""
    return _request(given, subject=given.subject, text=given.text_body, html=given.html_body)


def template_email(given: schemas.TemplateEmail, *, alias: str) -> send_request.SendRequest:
    """The send request of a message from the template with this alias."""
    for name, body in (("TextBody", given.text_body), ("HtmlBody", given.html_body)):
        if body:
            raise error_shape.TemplateWithBody(
                f"{name}: a template has the bodies of the message; leave TextBody and HtmlBody out"
            )
    return _request(given, template=alias, variables=values(given.template_model or {}), subject=given.subject or None)


def values(model: Mapping[str, Any]) -> dict[str, statuses.TemplateValue]:
    """The values of a model by their dotted names, no more than a message may have."""
    found: dict[str, statuses.TemplateValue] = {}
    for name, value in _values(model, path="", depth=0):
        found[name] = value
        if len(found) > limits.VARIABLES:
            raise errors.InvalidRequest(f"TemplateModel: has more than {limits.VARIABLES} values")
    return found


def _request(given: schemas.Message, **content: Any) -> send_request.SendRequest:
    metadata = dict(given.metadata or {})
    if given.message_stream:
        metadata[event_format.STREAM] = given.message_stream
    return send_request.SendRequest(
        sender=_one("From", given.sender),
        to=_addresses("To", given.to),
        cc=_addresses("Cc", given.cc) or None,
        bcc=_addresses("Bcc", given.bcc) or None,
        reply_to=_addresses("ReplyTo", given.reply_to) or None,
        headers=_headers(given.headers or ()),
        tags=given.tag or None,
        metadata=metadata or None,
        attachments=tuple(map(_attachment, given.attachments or ())) or None,
        **content,
    )


def _addresses(field: str, text: str | None) -> tuple[str, ...]:
    """The addresses of a list that is separated by commas.

    Packages look for the beginning of this error, and for the addresses in quotes, to tell recipients apart.
    """
    if len(text or "") > MAX_LIST_CHARACTERS:
        raise errors.InvalidRequest(
            f"{field}: at most {MAX_LIST_CHARACTERS} characters are allowed; send several messages"
        )
    try:
        return tuple(mailbox.written for mailbox in address_lists.parse_list(text or ""))
    except address.AddressError as problem:
        shown = validation_errors.printable(text or "")
        raise errors.InvalidRequest(f"Error parsing '{field}': {problem}; in address '{shown}'") from None


def _one(field: str, text: str) -> str:
    found = _addresses(field, text)
    if len(found) != 1:
        raise errors.InvalidRequest(f"{field}: has {len(found)} addresses; exactly one is allowed")
    return found[0]


def _headers(headers: Sequence[schemas.Header]) -> dict[str, str] | None:
    if len(headers) > limits.CUSTOM_HEADERS:
        raise errors.InvalidRequest(f"Headers: {len(headers)} fields; at most {limits.CUSTOM_HEADERS} are allowed")
    made: dict[str, str] = {}
    for header in headers:
        if header.name in made:
            name = validation_errors.printable(header.name)
            raise errors.InvalidRequest(f"Headers: '{name}' is given twice; give it once")
        made[header.name] = header.value
    return extension_api.custom_headers(made) or None


def _attachment(given: schemas.Attachment) -> send_request.Attachment:
    return send_request.Attachment(
        filename=given.name,
        content=given.content,
        content_type=given.content_type or None,
        content_id=given.content_id.removeprefix("cid:") if given.content_id else None,
    )


def _values(model: Mapping[str, Any], *, path: str, depth: int) -> Iterator[tuple[str, statuses.TemplateValue]]:
    """The values of a model by their dotted names; `null` has none."""
    if depth > MAX_DEPTH:
        raise errors.InvalidRequest(f"TemplateModel: objects are nested more than {MAX_DEPTH} deep")
    for name, value in model.items():
        if len(path) + len(name) > MAX_NAME_CHARACTERS:
            shown = validation_errors.printable(f"{path}{name}")
            raise errors.InvalidRequest(f"TemplateModel.{shown}: a name has at most {MAX_NAME_CHARACTERS} characters")
        place = f"{path}{name}"
        match value:
            case str() | int() | float() | list():
                yield place, value
            case dict():
                yield from _values(value, path=f"{place}.", depth=depth + 1)
