"""Tools about messages: search, the timeline of one in words, and the diagnosis of a delivery.

The sentences are ours and are derived from values of the API; what others wrote is a member of its own, marked as
`untrusted_text` does.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from postroad.model.bounces import reasons
from postroad.model.mail import statuses
from postroad_mcp import api_calls, tool, untrusted_text

MAX_ROWS: Final = 50
DEFAULT_ROWS: Final = 20
# A message may have many recipients and each many attempts: the answer stays readable, and says what it left out.
MAX_RECIPIENTS: Final = 50
MAX_STEPS: Final = 60
_NEXT_STEPS: Final = {
    reasons.Fault.ADDRESS: "Sending again does not help: correct the address, or stop sending to it.",
    reasons.Fault.CONTENT: "Change the message before sending it again.",
    reasons.Fault.POLICY: "Sending the same message again will probably fail too; see the meaning.",
    reasons.Fault.REPUTATION: "Sending more makes it worse: check the domain and the list of recipients.",
    reasons.Fault.RATE: "Nothing to do: the service slows down automatically.",
    reasons.Fault.NETWORK: "Usually temporary: the service retries while the message is queued.",
    reasons.Fault.OURS: "The operator of this service, or the owner of the sender domain, has to correct it.",
}
_REPORT: Final = "a bounce report or a complaint arrived"
_SUPPRESSED: Final = "The address was on the suppression list, so delivery was not attempted."

MessageId = Annotated[str, msgspec.Meta(description="The id of a message: `em_…`.", max_length=64)]


class SearchInput(tool.Input, frozen=True, kw_only=True):
    """What to look for; several filters narrow the search."""

    search: Annotated[
        str | None,
        msgspec.Meta(
            description="A search as in the dashboard, whose terms must all match: `to:@gmail.com`, `to:ann*`, "
            "`from:`, `status:bounced` (or deferred, suppressed, expired, canceled), `cause:reputation`, `code:5.1.1`, "
            "`provider:google`, `tag:`, `metadata.order:1042`, `after:2d`, words of the subject, `-` to exclude a "
            "term, `OR` between terms."
        ),
    ] = None
    status: Annotated[statuses.MessageStatus | None, msgspec.Meta(description="Only messages with this status.")] = None
    sender: Annotated[str | None, msgspec.Meta(description="Only messages from this address.")] = msgspec.field(
        name="from", default=None
    )
    to: Annotated[str | None, msgspec.Meta(description="Only messages to this address.")] = None
    tag: Annotated[str | None, msgspec.Meta(description="Only messages with this tag.")] = None
    after: Annotated[str | None, msgspec.Meta(description="Accepted at this time or later, RFC 3339.")] = None
    before: Annotated[str | None, msgspec.Meta(description="Accepted before this time, RFC 3339.")] = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_ROWS)] = DEFAULT_ROWS
    cursor: Annotated[str | None, msgspec.Meta(description="`next_cursor` of the previous page.")] = None


class FoundMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message in the list."""

    id: str
    status: str
    sender: str = msgspec.field(name="from")
    subject: untrusted_text.UntrustedText
    recipient_count: int
    created_at: str


class SearchResult(msgspec.Struct, frozen=True):
    """Messages, newest first. A page may be empty and still have a `next_cursor`."""

    messages: list[FoundMessage]
    next_cursor: str | None


class MessageInput(tool.Input, frozen=True, kw_only=True):
    """Which message."""

    message_id: MessageId


class RecipientState(msgspec.Struct, frozen=True, kw_only=True):
    """One recipient: its status, what it waits for, and what to do."""

    email: str
    status: str
    attempts: int
    waits_for: str | None
    next_attempt_at: str | None
    what_to_do: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a message. `timeline` is written by this service, oldest first."""

    id: str
    status: str
    sender: str = msgspec.field(name="from")
    subject: untrusted_text.UntrustedText
    timeline: list[str]
    recipients: list[RecipientState]
    left_out: Annotated[int, msgspec.Meta(description="Recipients and steps that are not shown.")]


class DeliveryInput(tool.Input, frozen=True, kw_only=True):
    """Which delivery: a message, and one of its recipients."""

    message_id: MessageId
    email: Annotated[
        str | None, msgspec.Meta(description="The recipient; by default those that are not delivered.")
    ] = None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Why one recipient is not delivered: the cause, its meaning, and advice."""

    email: str
    status: str
    attempts: int
    cause: Annotated[str | None, msgspec.Meta(description="address, content, policy, reputation, rate, network, ours")]
    reason: Annotated[str | None, msgspec.Meta(description="A stable name; docs/bounces.md explains each.")]
    meaning: str
    what_to_do: str
    host: str | None
    smtp_code: int | None
    reply: untrusted_text.UntrustedText | None


class DeliveryResult(msgspec.Struct, frozen=True, kw_only=True):
    """The diagnosis of each recipient in question."""

    message_id: str
    diagnoses: list[Diagnosis]
    left_out: int


async def search(api: api_calls.Api, given: SearchInput) -> SearchResult:
    """Messages of the log."""
    found = await api_calls.call(api, "GET", "/v1/messages", query=msgspec.to_builtins(given))
    rows = [
        FoundMessage(
            id=row["id"],
            status=row["status"],
            sender=untrusted_text.escape(row["from"]),
            subject=untrusted_text.mark(row["subject"]),
            recipient_count=row["recipient_count"],
            created_at=row["created_at"],
        )
        for row in found["messages"]
    ]
    return SearchResult(rows, found["next_cursor"])


async def explain(api: api_calls.Api, given: MessageInput) -> Explanation:
    """What happened to a message."""
    found = await _message(api, given.message_id)
    recipients, timeline = found["recipients"], _timeline(found)
    left_out = max(0, len(recipients) - MAX_RECIPIENTS) + max(0, len(timeline) - MAX_STEPS)
    return Explanation(
        id=found["id"],
        status=found["status"],
        sender=untrusted_text.escape(found["from"]),
        subject=untrusted_text.mark(found["subject"]),
        timeline=timeline[:MAX_STEPS],
        recipients=[_state(row, _last(found, row)) for row in recipients[:MAX_RECIPIENTS]],
        left_out=left_out,
    )


async def diagnose(api: api_calls.Api, given: DeliveryInput) -> DeliveryResult:
    """Why recipients of a message are not delivered."""
    found = await _message(api, given.message_id)
    if given.email is None:
        wanted = [row for row in found["recipients"] if row["status"] != statuses.RecipientStatus.DELIVERED]
        wanted += [row for row in found["recipients"] if row not in wanted and _report(found, row)]
    else:
        wanted = [row for row in found["recipients"] if row["email"].casefold() == given.email.casefold()]
        if not wanted:
            raise api_calls.ToolError("this message has no such recipient; explain_message lists them")
    diagnoses = [_diagnosis(found, row) for row in wanted[:MAX_RECIPIENTS]]
    return DeliveryResult(message_id=found["id"], diagnoses=diagnoses, left_out=max(0, len(wanted) - MAX_RECIPIENTS))


async def _message(api: api_calls.Api, message_id: str) -> Mapping[str, Any]:
    return await api_calls.call(api, "GET", f"/v1/messages/{api_calls.segment(message_id)}")


def _timeline(found: Mapping[str, Any]) -> list[str]:
    emails = {row["id"]: untrusted_text.escape(row["email"]) for row in found["recipients"]}
    count = found["recipient_count"]
    steps = [(found["created_at"], f"accepted with {count} recipient{'' if count == 1 else 's'}")]
    steps += [(attempt["started_at"], _attempt_step(attempt, emails)) for attempt in found["attempts"]]
    steps += [
        (report["received_at"], f"{emails.get(report['recipient_id'], 'a recipient')}: {_REPORT}")
        for report in found["async_bounces"]
    ]
    return [f"{when}: {what}." for when, what in sorted(steps, key=lambda step: step[0])]


def _attempt_step(attempt: Mapping[str, Any], emails: Mapping[str, str]) -> str:
    where = f" by {untrusted_text.escape(attempt['host'])}" if attempt["host"] else ""
    code = f" with {attempt['smtp_code']}" if attempt["smtp_code"] else ""
    words = {"delivered": "accepted", "retry": "deferred"}
    result = words.get(attempt["verdict"], attempt["verdict"])
    why = "" if attempt["verdict"] == "delivered" else f": {attempt['explanation'].rstrip('.')}"
    return f"{emails.get(attempt['recipient_id'], 'a recipient')}: {result}{where}{code}{why}"


def _last(found: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The last attempt for a recipient."""
    own: Sequence[Mapping[str, Any]] = [
        attempt for attempt in found["attempts"] if attempt["recipient_id"] == row["id"]
    ]
    return max(own, key=lambda attempt: str(attempt["started_at"]), default=None)


def _report(found: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The report that arrived after a recipient was final."""
    return next((report for report in found["async_bounces"] if report["recipient_id"] == row["id"]), None)


def _state(row: Mapping[str, Any], last: Mapping[str, Any] | None) -> RecipientState:
    queue = row.get("queue") or {}
    return RecipientState(
        email=untrusted_text.escape(row["email"]),
        status=row["status"],
        attempts=row["attempt_count"],
        waits_for=untrusted_text.escape(queue["reason"]["text"]) if queue else None,
        next_attempt_at=queue.get("next_attempt_at"),
        what_to_do=_what_to_do(row, last["fault"] if last else None),
    )


def _what_to_do(row: Mapping[str, Any], fault: str | None) -> str:
    if row["status"] == statuses.RecipientStatus.DELIVERED:
        return "Nothing: the receiving server accepted the message."
    if row.get("queue"):
        return "Wait: the service sends it in its turn, and retries automatically."
    return _NEXT_STEPS.get(reasons.Fault(fault), "") if fault else "See diagnose_delivery."


def _diagnosis(found: Mapping[str, Any], row: Mapping[str, Any]) -> Diagnosis:
    last, report = _last(found, row) or {}, _report(found, row)
    fault = (report["fault"] if report else last.get("fault")) or None
    known = reasons.Fault(fault) if fault in set(reasons.Fault) else None
    text = report["response"] if report else last.get("smtp_response") or row["last_smtp_response"]
    meaning = last.get("explanation", "")
    if report:
        meaning = f"Accepted first; then {_REPORT}. The reply is that of the report."
    elif not last:
        meaning = _SUPPRESSED if row["status"] == statuses.RecipientStatus.BOUNCED else "No attempt has been made."
    return Diagnosis(
        email=untrusted_text.escape(row["email"]),
        status=row["status"],
        attempts=row["attempt_count"],
        cause=known,
        reason=None if report else last.get("reason"),
        meaning=untrusted_text.escape(meaning),
        what_to_do=_NEXT_STEPS[known] if known else _what_to_do(row, None),
        host=untrusted_text.escape(last["host"]) if last.get("host") else None,
        smtp_code=None if report else last.get("smtp_code", row["last_smtp_code"]),
        reply=untrusted_text.mark_optional(text or None),
    )


TOOLS: Final = (
    tool.Tool(
        name="search_messages",
        title="Search messages",
        description="Search the messages of this account by status, sender, recipient, tag and time, or by outcome, "
        "cause and reply with `search`, newest first. "
        "Needs an API key with the scope read.",
        arguments=SearchInput,
        result=SearchResult,
        run=search,
    ),
    tool.Tool(
        name="explain_message",
        title="Explain a message",
        description="Explain what happened to one message: each attempt and report in order, the status of each "
        "recipient, what it waits for, and what to do. Needs an API key with the scope read.",
        arguments=MessageInput,
        result=Explanation,
        run=explain,
    ),
    tool.Tool(
        name="diagnose_delivery",
        title="Diagnose a delivery or bounce",
        description="Explain why a recipient of a message bounced, failed or is waiting: the cause, its meaning, the "
        "reply of the receiving server, and advice. Needs an API key with the scope read.",
        arguments=DeliveryInput,
        result=DeliveryResult,
        run=diagnose,
    ),
)
