"""Validation of attachments: file names, content types, base64, and the limits of those in a MIME message.

An attachment is never opened or unpacked; its bytes pass through.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from postroad import errors
from postroad.model import limits, send_request
from postroad.protocol import file_names
from postroad.protocol.mime import (
    base64_lines,
    builder,
    content_types,
    message_parser,
    part_walker,
    preview_parser,
    transfer_encoding,
)
from postroad.protocol.mime import parameters as mime_parameters

T = TypeVar("T")
_NO_FILES: Final = ("text/", "multipart/")
# What a preview shows, found within the time that the other checks of a message take.
_BOUNDS: Final = msgspec.structs.replace(preview_parser.BOUNDS, delimiter_lines=message_parser.MAX_DELIMITER_LINES)


def check(attachments: Sequence[send_request.Attachment]) -> tuple[builder.Attachment, ...]:
    """The attachments as validated values, with their content decoded."""
    if not attachments:
        return ()
    _check_count(len(attachments))
    if sum(_encoded_length(attachment.content) for attachment in attachments) > limits.MIME_BYTES:
        raise errors.PayloadTooLarge("attachments: together they exceed the maximum message size of 10 MiB")
    _check_content_ids(attachments)
    return tuple(_check(f"attachments[{index}]", attachment) for index, attachment in enumerate(attachments))


def check_parts(content: bytes) -> None:
    """Hold the files of a MIME message to the same limits: their number, and the length of their names.

    A file is a part that has a name, is marked as an attachment, or is not text; the text of the message is none, and
    neither is an empty multipart. Parts beyond the bounds of the walk are not counted.
    """
    count = 0
    for leaf in part_walker.Walker(content, _BOUNDS).leaves():
        disposition, named = mime_parameters.read(leaf.first("content-disposition"))
        filename = named.get("filename") or leaf.parameters.get("name", "")
        if len(filename) > limits.FILENAME_CHARACTERS:
            raise errors.InvalidRequest(
                f"attachments: the file name of part {leaf.path or 1} has {len(filename)} characters; at most "
                f"{limits.FILENAME_CHARACTERS} are allowed"
            )
        # RFC 2183 section 2.8: an unknown disposition is an attachment.
        count += bool(filename) or disposition not in {"", "inline"} or not leaf.content_type.startswith(_NO_FILES)
    _check_count(count)


def _check_count(count: int) -> None:
    if count > limits.ATTACHMENTS:
        raise errors.InvalidRequest(f"attachments: {count} files; at most {limits.ATTACHMENTS} are allowed")


def _encoded_length(content: str) -> int:
    """The length of base64 without its line breaks, which the message does not keep."""
    return len(content) - content.count("\n") - content.count("\r")


def _check(field: str, attachment: send_request.Attachment) -> builder.Attachment:
    _check_field(f"{field}.filename", file_names.check, attachment.filename)
    if attachment.content_type is not None:
        _check_field(f"{field}.content_type", content_types.check, attachment.content_type)
    content = _check_field(f"{field}.content", base64_lines.decode_strict, attachment.content)
    kind = attachment.content_type or content_types.guess(attachment.filename)
    if content_types.is_message(kind):
        try:
            transfer_encoding.encode_message(content)
        except transfer_encoding.BodyError as problem:
            if attachment.content_type is not None:
                raise errors.InvalidRequest(f"{field}.content_type: {problem}") from None
            kind = content_types.DEFAULT
    return builder.Attachment(
        filename=attachment.filename, content=content, content_type=kind, content_id=attachment.content_id
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
