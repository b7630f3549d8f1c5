"""Validation of a send request, the same for every interface (docs/api.md, "Send").

`check` turns a request into values that the composer can trust, or raises InvalidRequest with the name of the field and
what to do. It needs no database and no clock: rules that depend on the account (domain, template, credits) are checked
later, in submit.py.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from postroad import errors
from postroad.model.mail import limits, send_request, simulated_outcomes, statuses
from postroad.model.units import labels
from postroad.protocol.mime import (
    address,
    builder,
    content_types,
    file_names,
    header_fields,
    message_parser,
    part_walker,
    preview_parser,
    transfer_encoding,
)

# Validation of attachments: file names, content types, base64, and the limits of those in a MIME message.
#
# An attachment is never opened or unpacked; its bytes pass through.

T = TypeVar("T")
_NO_FILES: Final = ("text/", "multipart/")
# What a preview shows, found within the time that the other checks of a message take.
_BOUNDS: Final = msgspec.structs.replace(preview_parser.BOUNDS, delimiter_lines=message_parser.MAX_DELIMITER_LINES)


def check_attachments(attachments: Sequence[send_request.Attachment]) -> tuple[builder.Attachment, ...]:
    if not attachments:
        return ()
    _check_attachment_count(len(attachments))
    # The length of base64 without its line breaks, which the message does not keep.
    encoded = sum(len(file.content) - file.content.count("\n") - file.content.count("\r") for file in attachments)
    if encoded > limits.MIME_BYTES:
        raise errors.PayloadTooLarge("attachments: together they exceed the maximum message size of 10 MiB")
    _check_content_ids(attachments)
    return tuple(_check_attachment(f"attachments[{index}]", attachment) for index, attachment in enumerate(attachments))


def check_attachment_parts(content: bytes) -> None:
    """Hold the files of a MIME message to the same limits: their number, and the length of their names.

    A file is a part that has a name, is marked as an attachment, or is not text; the text of the message is none, and
    neither is an empty multipart. Parts beyond the bounds of the walk are not counted.
    """
    count = 0
    for leaf in part_walker.Walker(content, _BOUNDS).leaves():
        disposition, named = part_walker.read_parameters(leaf.first("content-disposition"))
        filename = named.get("filename") or leaf.parameters.get("name", "")
        if len(filename) > limits.FILENAME_CHARACTERS:
            raise errors.InvalidRequest(
                f"attachments: the file name of part {leaf.path or 1} has {len(filename)} characters; at most "
                f"{limits.FILENAME_CHARACTERS} are allowed"
            )
        # RFC 2183 section 2.8: an unknown disposition is an attachment.
        count += bool(filename) or disposition not in {"", "inline"} or not leaf.content_type.startswith(_NO_FILES)
    _check_attachment_count(count)


def _check_attachment_count(count: int) -> None:
    if count > limits.ATTACHMENTS:
        raise errors.InvalidRequest(f"attachments: {count} files; at most {limits.ATTACHMENTS} are allowed")


def _check_attachment(field: str, attachment: send_request.Attachment) -> builder.Attachment:
    _check_attachment_field(f"{field}.filename", file_names.check, attachment.filename)
    if attachment.content_type is not None:
        _check_attachment_field(f"{field}.content_type", content_types.check, attachment.content_type)
    content = _check_attachment_field(f"{field}.content", transfer_encoding.decode_base64, attachment.content)
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


def _check_attachment_field(field: str, rule: Callable[[str], T], text: str) -> T:
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
        _check_attachment_field(field, builder.check_content_id, content_id)
        if content_id in seen:
            raise errors.InvalidRequest(f"{field}: {content_id!r} is used twice; each content_id must be unique")
        seen.add(content_id)


_ALIAS: Final = re.compile(limits.TEMPLATE_ALIAS_PATTERN)
_METADATA_KEY: Final = re.compile(limits.METADATA_KEY_PATTERN)
# No database text can hold these.
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
# RFC 2369 section 3.4 and RFC 8058: links that mail programs offer as a button. Others show nothing or a dead one.
_UNSUBSCRIBE_LINK: Final = r"[ \t]*<(?:https://|mailto:)[!-;=?-~]+>[ \t]*"
_UNSUBSCRIBE: Final = re.compile(rf"{_UNSUBSCRIBE_LINK}(?:,{_UNSUBSCRIBE_LINK})*", re.IGNORECASE)
# What a message with a list gets.
OWN_UNSUBSCRIBE: Final = frozenset({"list-unsubscribe", "list-unsubscribe-post"})
SUBJECT_RULE: Final = f"1 to {limits.SUBJECT_CHARACTERS} characters on one line"


class CheckedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A validated message of any interface. `recipients` has each unique address once, in the order given."""

    sender: address.Mailbox
    to: tuple[address.Mailbox, ...]
    cc: tuple[address.Mailbox, ...]
    bcc: tuple[address.Mailbox, ...]
    reply_to: tuple[address.Mailbox, ...]
    recipients: tuple[address.Mailbox, ...]
    subject: str | None
    headers: Mapping[str, str] = {}
    tags: tuple[str, ...]
    metadata: Mapping[str, str] = {}
    attachments: tuple[builder.Attachment, ...] = ()
    # As the sender gave them; `send_at` is compared with the clock later.
    send_at: int | None = None
    expires_in: int | None = None
    # What the simulator plays; "" for what the addresses stand for.
    simulation: str = ""
    # The list that its recipient can leave; "" for none.
    list_name: str = ""

    @property
    def size(self) -> int:
        raise NotImplementedError


class CheckedSend(CheckedMessage, frozen=True, kw_only=True):
    """A validated send request. Its template, if it has one, supplies the bodies and a missing subject."""

    text: str | None
    html: str | None
    template: str | None
    variables: Mapping[str, statuses.TemplateValue]

    @property
    def size(self) -> int:
        files = (
            sum([len(attachment.content) for attachment in self.attachments]) * 4 // 3 if self.attachments else 0
        )  # in base64
        return len(self.text or "") + len(self.html or "") + files


def check(request: send_request.SendRequest) -> CheckedSend:
    """The request as trusted values; raises for the first rule that it breaks."""
    to = _mailboxes("to", request.to)
    cc = () if request.cc is None else _mailboxes("cc", request.cc)
    bcc = () if request.bcc is None else _mailboxes("bcc", request.bcc)
    if not to:
        raise errors.InvalidRequest("to: at least one address is required")
    _check_content(request)
    if request.subject is not None:
        check_subject(request.subject)
    elif request.template is None:
        raise errors.InvalidRequest("subject: is required unless a template supplies it")
    sender = parse_mailbox("from", request.sender)
    reply_to = () if request.reply_to is None else _reply_to(request.reply_to)
    recipients = to if len(to) == 1 and not (cc or bcc) else _recipients(to + cc + bcc)
    for field, text in (("text", request.text), ("html", request.html)):
        if text and "\0" in text:
            raise errors.InvalidRequest(f"{field}: the character U+0000 is not allowed in mail")
    checked = CheckedSend(
        sender=sender,
        to=to,
        cc=cc,
        bcc=bcc,
        reply_to=reply_to,
        recipients=recipients,
        subject=request.subject,
        text=request.text or None,
        html=request.html or None,
        template=request.template,
        variables=request.variables or {},
        headers=_headers(request.headers) if request.headers else {},
        tags=check_tags("tags", _listed(request.tags)) if request.tags is not None else (),
        metadata=check_metadata("metadata.", request.metadata) if request.metadata else {},
        attachments=check_attachments(request.attachments) if request.attachments else (),
    )
    options = (request.send_at, request.expires_in, request.simulate, request.unsubscribe)
    return _with_options(checked, request) if request.metadata or options != _NO_OPTIONS else checked


_NO_OPTIONS: Final = (None, None, None, None)


def _with_options(checked: CheckedSend, request: send_request.SendRequest) -> CheckedSend:
    simulate, unsubscribe, list_name = request.simulate, request.unsubscribe, ""
    if unsubscribe is not None:
        headers = {name.lower() for name in checked.headers}
        list_name = check_list("unsubscribe.list", unsubscribe.list_name, checked.recipients, headers)
    return msgspec.structs.replace(
        checked,
        send_at=None if request.send_at is None else send_request.parse_send_at(request.send_at),
        expires_in=None if request.expires_in is None else send_request.check_expires_in(request.expires_in),
        simulation="" if simulate is None else simulated_outcomes.provider_of(simulate.provider, simulate.behaviour),
        list_name=list_name,
    )


def check_list(field: str, name: str, recipients: Sequence[address.Mailbox], headers: Collection[str]) -> str:
    """The name of a list of a message with these recipients and headers: its link is for one person."""
    labels.check_label(field, name, limit=limits.LIST_CHARACTERS)
    if len(recipients) != 1:
        raise errors.InvalidRequest(
            f"{field}: the unsubscribe link is for one recipient, but the message has {len(recipients)}; send a batch"
        )
    if not OWN_UNSUBSCRIBE.isdisjoint(headers):
        raise errors.InvalidRequest(f"{field}: cannot be combined with your own List-Unsubscribe headers; use one")
    return name


def check_subject(subject: str) -> None:
    if not 1 <= len(subject) <= limits.SUBJECT_CHARACTERS:
        raise errors.InvalidRequest(f"subject: has {len(subject)} characters; {SUBJECT_RULE}")
    if not (subject.isascii() and subject.isprintable() and "=?" not in subject):
        check_line("subject", subject)


def check_alias(field: str, alias: str) -> str:
    if not is_alias(alias):
        raise errors.InvalidRequest(
            f"{field}: must be 1 to {limits.TEMPLATE_ALIAS_CHARACTERS} of the characters a-z, 0-9, '_' and '-'"
        )
    return alias


def check_tags(field: str, tags: tuple[str, ...]) -> tuple[str, ...]:
    """The tags without duplicates."""
    if len(tags) > limits.TAGS:
        raise errors.InvalidRequest(f"{field}: {len(tags)} tags; at most {limits.TAGS} are allowed")
    for index, tag in enumerate(tags):
        if not 1 <= len(tag) <= limits.TAG_CHARACTERS:
            raise errors.InvalidRequest(
                f"{field}[{index}]: a tag must have 1 to {limits.TAG_CHARACTERS} printable characters"
            )
        try:
            header_fields.check_label(tag)
        except header_fields.HeaderError as problem:
            raise errors.InvalidRequest(f"{field}[{index}]: {problem}") from None
    return tuple(dict.fromkeys(tags))


def check_metadata(prefix: str, metadata: Mapping[str, str]) -> Mapping[str, str]:
    """Validate the caller's own data; `prefix` and a key name the field of the interface."""
    if len(metadata) > limits.METADATA_KEYS:
        raise errors.InvalidRequest(f"{prefix[:-1]}: {len(metadata)} keys; at most {limits.METADATA_KEYS} are allowed")
    for key, value in metadata.items():
        if _METADATA_KEY.fullmatch(key) is None:
            raise errors.InvalidRequest(
                f"{prefix}{key[:80]!r}: a key must have 1 to 40 of the characters A-Z, a-z, 0-9, '_' and '-'"
            )
        if len(value) > limits.METADATA_VALUE_CHARACTERS:
            raise errors.InvalidRequest(
                f"{prefix}{key}: has {len(value)} characters; at most {limits.METADATA_VALUE_CHARACTERS} are allowed"
            )
        if _UNSTORABLE.search(value):
            raise errors.InvalidRequest(f"{prefix}{key}: U+0000 and lone surrogates are not allowed")
    return metadata


def check_line(field: str, text: str) -> None:
    try:
        header_fields.check_value(text)
    except header_fields.HeaderError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


def parse_mailbox(field: str, text: str) -> address.Mailbox:
    try:
        return address.parse(text)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


def deduplicate(mailboxes: Sequence[address.Mailbox]) -> tuple[address.Mailbox, ...]:
    """The first mailbox of each address, in order."""
    found: dict[str, address.Mailbox] = {}
    for mailbox in mailboxes:
        found.setdefault(mailbox.key, mailbox)
    return tuple(found.values())


def is_alias(text: str) -> bool:
    return _ALIAS.fullmatch(text) is not None


def _listed(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """A single string is the same as a list of one."""
    return (value,) if isinstance(value, str) else value or ()


def _mailboxes(field: str, given: str | tuple[str, ...]) -> tuple[address.Mailbox, ...]:
    if isinstance(given, str):
        return (parse_mailbox(field, given),)
    texts = given
    # The length is checked before the members: fifty thousand bad addresses are one mistake.
    if len(texts) > send_request.MAX_ADDRESSES:
        raise errors.InvalidRequest(f"{field}: {len(texts)} addresses; {_RECIPIENT_RULE}")
    if len(texts) == 1:
        return (parse_mailbox(field, texts[0]),)
    if not texts:
        return ()
    return tuple(parse_mailbox(f"{field}[{index}]", text) for index, text in enumerate(texts))


def _reply_to(given: str | tuple[str, ...]) -> tuple[address.Mailbox, ...]:
    texts = (given,) if isinstance(given, str) else given
    check_reply_to_count("reply_to", len(texts))
    return _mailboxes("reply_to", texts)


_RECIPIENT_RULE: Final = f"at most {limits.UNIQUE_RECIPIENTS} unique addresses in to, cc and bcc together"


def _recipients(mailboxes: tuple[address.Mailbox, ...]) -> tuple[address.Mailbox, ...]:
    recipients = deduplicate(mailboxes)
    if len(recipients) > limits.UNIQUE_RECIPIENTS:
        raise errors.InvalidRequest(f"to, cc, bcc: {len(recipients)} unique addresses; {_RECIPIENT_RULE}")
    return recipients


def _check_content(request: send_request.SendRequest) -> None:
    if request.template is not None:
        check_alias("template", request.template)
    if request.template is not None and (request.text or request.html):
        raise errors.InvalidRequest("template: cannot be combined with text or html; leave those out")
    if request.variables is not None and request.template is None:
        raise errors.InvalidRequest("variables: only allowed with template")
    if request.variables is not None and len(request.variables) > limits.VARIABLES:
        raise errors.InvalidRequest(
            f"variables: {len(request.variables)} values; at most {limits.VARIABLES} are allowed"
        )
    if request.variables:
        check_variables("variables", request.variables)
    if not (request.text or request.html or request.attachments or request.template is not None):
        raise errors.InvalidRequest("text: give at least one of text, html, attachments, template")


def check_variables(field: str, variables: Mapping[str, statuses.TemplateValue]) -> None:
    """Refuse lists and objects that are nested too deep or hold too much."""
    level: list[Any] = [value for value in variables.values() if isinstance(value, list | dict)]
    left, depth = limits.VARIABLE_VALUES, 0
    while level:
        depth += 1
        inner = [item for held in level for item in (held.values() if isinstance(held, dict) else held)]
        left -= len(inner)
        if depth > limits.VARIABLE_DEPTH or left < 0:
            raise errors.InvalidRequest(
                f"{field}: lists and objects may be nested {limits.VARIABLE_DEPTH} deep and have "
                f"{limits.VARIABLE_VALUES} values in all"
            )
        level = [item for item in inner if isinstance(item, list | dict)]


def check_header_count(count: int) -> None:
    if count > limits.CUSTOM_HEADERS:
        raise errors.InvalidRequest(f"headers: {count} custom headers; at most {limits.CUSTOM_HEADERS} are allowed")


def check_reply_to_count(field: str, count: int) -> None:
    if count > limits.REPLY_TO_ADDRESSES:
        raise errors.InvalidRequest(f"{field}: {count} addresses; at most {limits.REPLY_TO_ADDRESSES} are allowed")


def is_reserved(name: str) -> bool:
    """Whether a header, which is named in lower case, is not a custom one."""
    return name in send_request.RESERVED_HEADERS or name.startswith(send_request.RESERVED_HEADER_PREFIXES)


def _headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    check_header_count(len(headers))
    seen: dict[str, str] = {}
    for name, value in headers.items():
        try:
            _check_header(name, value)
            _refuse_repeated(name, seen)
        except header_fields.HeaderError as problem:
            raise errors.InvalidRequest(f"headers[{name[:80]!r}]: {problem}") from None
    return headers


def _refuse_repeated(name: str, seen: dict[str, str]) -> None:
    """Names are compared without regard to case (RFC 5322 section 1.2.2): of two, readers would choose differently."""
    first = seen.setdefault(name.lower(), name)
    if first != name:
        raise header_fields.HeaderError(
            f"the same header as {first!r}, because case does not matter in names; give it once"
        )


def _check_header(name: str, value: str) -> None:
    header_fields.check_name(name)
    header_fields.check_value(value)
    if is_reserved(name.lower()):
        raise header_fields.HeaderError("this name is reserved for Postroad")
    if len(name) + 2 + len(value.encode()) > limits.HEADER_LINE_OCTETS:
        raise header_fields.HeaderError(f"longer than {limits.HEADER_LINE_OCTETS} octets with its name")
    builder.check_custom_header(name, value)
    if name.lower() == "list-unsubscribe" and _UNSUBSCRIBE.fullmatch(value) is None:
        raise header_fields.HeaderError("must be '<https://…>' or '<mailto:…>', or several of them separated by commas")
