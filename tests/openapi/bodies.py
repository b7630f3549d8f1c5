"""Generated messages, made such that they can be accepted: what several members have to keep together."""

import itertools
import re
import time
from collections.abc import MutableMapping, Sequence
from typing import Any

from postroad.mail.accept import validation
from postroad.model.mail import limits, send_request
from postroad.model.units import times
from postroad.protocol.mime import address

TEMPLATE = "welcome"
# Generated characters may take four octets each in a header line that is bounded in octets.
HEADER_VALUE_CHARACTERS = 200

Body = MutableMapping[str, Any]


def is_address(value: object) -> bool:
    """Whether this is a text that the service takes for an address."""
    try:
        return isinstance(value, str) and address.parse(value) is not None
    except address.AddressError:
        return False


def from_domain(written: str, domain: str) -> str:
    """The same sender at another domain."""
    local, _, rest = written.rpartition("@")
    return f"{local}@{domain}{'>' if '>' in rest else ''}"


def complete(body: Body) -> None:
    """A message with a subject and a content: the template if there is one, else the others."""
    if body.get("template") is None and body.get("variables") is not None:
        body["template"] = TEMPLATE
    if body.get("template") is not None:
        body.pop("text", None)
        body.pop("html", None)
        return
    if body.get("subject") is None:
        body["subject"] = "Hello"
    if not (body.get("text") or body.get("html") or body.get("attachments")):
        body["text"] = "Hi"


def give_variables(body: Body, placeholders: Sequence[str]) -> None:
    """Each placeholder of the template gets a value, among those that were generated."""
    values = dict.fromkeys(placeholders, "Ada")
    given = body.get("variables")
    if given is None and values:
        body["variables"] = values
    elif isinstance(given, dict) and len(given) <= limits.VARIABLES:
        body["variables"] = dict(itertools.islice((values | given | values).items(), limits.VARIABLES))


def keep_numbers_small(body: Body) -> None:
    """Inside of lists and objects a schema allows everything; a number has to fit into 64 bits all the same."""
    given = body.get("variables")
    if isinstance(given, dict):
        body["variables"] = {
            name: [1, {"a": "b"}] if isinstance(value, list | dict) else value for name, value in given.items()
        }


def close_sections(body: Body) -> None:
    """A schema knows of texts, and not of templates."""
    for member in ("subject", "text", "html"):
        source = body.get(member)
        if isinstance(source, str) and "\0" not in source and re.search(r"\{[{%]", source):
            body[member] = "Hello {{#name}}{{name}}{{/name}}"
    if isinstance(body.get("layout"), str) and validation.is_alias(body["layout"]):
        body["layout"] = None


def tell_inline_images_apart(body: Body) -> None:
    """Images that the HTML refers to have names of their own."""
    attachments = body.get("attachments")
    seen: set[str] = set()
    for attachment in attachments if isinstance(attachments, list) else ():
        content_id = attachment.get("content_id") if isinstance(attachment, dict) else None
        if isinstance(content_id, str) and content_id in seen:
            attachment["content_id"] = f"{len(seen)}{content_id[3:]}"
        if isinstance(content_id, str):
            seen.add(attachment["content_id"])


def shorten_headers(body: Body) -> None:
    """Headers that fit onto their lines."""
    headers = body.get("headers")
    if isinstance(headers, dict):
        for name, value in headers.items():
            if isinstance(value, str) and not value.isascii() and len(value) <= limits.HEADER_LINE_OCTETS:
                headers[name] = value[:HEADER_VALUE_CHARACTERS]


def keep_unique_recipients(body: Body) -> None:
    """At most so many different addresses in all lists together; repeated ones stay."""
    left = limits.UNIQUE_RECIPIENTS - sum(isinstance(body.get(name), str) for name in ("to", "cc", "bcc"))
    for name in ("to", "cc", "bcc"):
        given = body.get(name)
        if (
            isinstance(given, list)
            and len(given) <= send_request.MAX_ADDRESSES
            and all(is_address(one) for one in given)
        ):
            kept = set(list(dict.fromkeys(given))[:left])
            left -= len(kept)
            body[name] = [item for item in given if item in kept]


def soon() -> str:
    """A time to send at that does not come while tests run."""
    return times.to_wire((int(time.time()) + 86_400) * times.SECOND)


def come_soon(body: Body) -> None:
    """A time to send at that is near: a schema knows of times, and not of now."""
    try:
        times.parse(str(body.get("send_at")))
    except ValueError:
        return
    body["send_at"] = soon()
