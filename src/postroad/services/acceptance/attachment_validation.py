"""Validation of attachments: file names, content types, base64.

An attachment is never opened or unpacked; its bytes pass through.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from postroad import errors
from postroad.model import limits, send_request
from postroad.protocol import file_names
from postroad.protocol.mime import base64_lines, builder, content_types

T = TypeVar("T")


def check(attachments: Sequence[send_request.Attachment]) -> tuple[builder.Attachment, ...]:
    """The attachments as validated values, with their content decoded."""
    if not attachments:
        return ()
    if len(attachments) > limits.ATTACHMENTS:
        raise errors.InvalidRequest(f"attachments: {len(attachments)} files; at most {limits.ATTACHMENTS} are allowed")
    if sum(_encoded_length(attachment.content) for attachment in attachments) > limits.MIME_BYTES:
        raise errors.PayloadTooLarge("attachments: together they exceed the maximum message size of 10 MiB")
    _check_content_ids(attachments)
    return tuple(_check(f"attachments[{index}]", attachment) for index, attachment in enumerate(attachments))


def _encoded_length(content: str) -> int:
    """The length of base64 without its line breaks, which the message does not keep."""
    return len(content) - content.count("\n") - content.count("\r")


def _check(field: str, attachment: send_request.Attachment) -> builder.Attachment:
    _check_field(f"{field}.filename", file_names.check, attachment.filename)
    if attachment.content_type is not None:
        _check_field(f"{field}.content_type", content_types.check, attachment.content_type)
    return builder.Attachment(
        filename=attachment.filename,
        content=_check_field(f"{field}.content", base64_lines.decode_strict, attachment.content),
        content_type=attachment.content_type or content_types.guess(attachment.filename),
        content_id=attachment.content_id,
    )


def _check_field(field: str, rule: Callable[[str], T], text: str) -> T:
    try:
        return rule(text)
    except ValueError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


def _check_content_ids(attachments: Sequence[send_request.Attachment]) -> None:
    seen: set[str] = set()
    for index, attachment in enumerate(attachments):
        content_id, field = attachment.content_id, f"attachments[{index}].content_id"
        if content_id is None:
            continue
        _check_field(field, builder.check_content_id, content_id)
        if content_id in seen:
            raise errors.InvalidRequest(f"{field}: {content_id!r} is used twice; each content_id must be unique")
        seen.add(content_id)
