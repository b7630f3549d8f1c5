"""What follows from the result of an attempt: delivered, bounced or to be tried again, whose fault it is, and why.

The verdict follows from the stage and the code alone: 2xx after the content delivers; 5xx bounces, before the recipient
is named only after other hosts were asked; everything else is tried again, until the schedule ends. The reason is found
in the tables of `reply_rules`; it decides about suppression and slowing down, never about the verdict.

The fault `address` is given only to a bounce that speaks of the recipient: no address is given up because of a
temporary refusal, nor because of what a host said before it knew the recipient.
"""

from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.bounces import classifier, reasons
from postroad.protocol.smtp import values

Fault = reasons.Fault
FAULT_LABELS = reasons.FAULT_LABELS
explain = reasons.explain
Stage = values.Stage


class Verdict(StrEnum):
    """What becomes of a recipient. `judge` never says FAILED: the end of the schedule does."""

    DELIVERED = "delivered"
    BOUNCED = "bounced"
    RETRY = "retry"
    FAILED = "failed"


class Disposition(msgspec.Struct, frozen=True):
    """What follows from one attempt for one recipient."""

    verdict: Verdict
    fault: Fault | None  # None when delivered
    reason: str  # a name of `reasons.REASONS`
    slow_down: bool = False  # the destination asks for less: the pool backs off
    retry_after: int | None = None  # seconds, when the destination names a time
    next_host: bool = False  # another host of the route should be tried first


# The hosts of a route may differ in what they say here; afterwards each speaks for the recipient's domain.
_HOST_STAGES: Final = frozenset({Stage.CONNECT, Stage.BANNER, Stage.HELLO, Stage.STARTTLS})
_BEFORE_RECIPIENT: Final = _HOST_STAGES | {Stage.MAIL}
# RFC 5321 section 3.8: the host ends the session, whatever it was asked. Often an idle connection was kept too long.
_SERVICE_CLOSING: Final = 421

# Troubles are worded by this service, in routing and in the connection. Names of hosts stand in some of them; they have
# no blanks, so a phrase with a blank cannot be found in a name.
_PERMANENT_AT_ROUTE: Final = (
    ("(null mx)", "null_mx"),
    (" does not exist", "domain_not_found"),
    (" is not an address", "bad_address"),
    (" is not the name of a domain", "bad_address"),
    (" loops back", "mail_loop"),
    (" missing from the store", "refused_here"),
)
_PERMANENT: Final = (
    ("does not offer ", "extension_missing"),
    ("messages of at most ", "message_too_large"),
)
_FAILURES_AT_CONNECT: Final = (
    ("connection refused", "connection_refused"),
    ("timed out", "connection_timed_out"),
    ("no answer within", "connection_timed_out"),
    ("is unreachable", "host_unreachable"),
    ("no route to", "host_unreachable"),
)
_FAILURES_IN_SESSION: Final = (
    ("not answer in time", "reply_timed_out"),
    ("timed out", "reply_timed_out"),
    ("destination sent ", "protocol_error"),
    ("destination answered ", "protocol_error"),
)

_DELIVERED: Final = Disposition(Verdict.DELIVERED, fault=None, reason="delivered")


def classify(result: values.RecipientResult) -> Disposition:
    """The judgement on one recipient's result."""
    reply = result.reply
    if reply is None:
        return _classify_failure(result)
    kind = reply.code // 100
    if kind == 2 and result.stage is Stage.CONTENT:  # noqa: PLR2004 - RFC 5321 section 4.2.1
        return _DELIVERED
    if kind in {4, 5}:
        return _classify_refusal(result.stage, reply, bounced=kind == 5)  # noqa: PLR2004 - the same
    # A success where only a refusal ends a transaction, or no code of SMTP at all.
    return _disposition(Verdict.RETRY, "protocol_error", next_host=result.stage in _BEFORE_RECIPIENT)


def _classify_refusal(stage: values.Stage, reply: values.Reply, *, bounced: bool) -> Disposition:
    reason = _reason_at(stage, classifier.find_reason(reply), bounced=bounced)
    # A pause keeps the neighbours from a host that takes a first visit for a final refusal.
    slow_down = reasons.REASONS[reason].slow_down or (bounced and reason == "greylisted")
    return _disposition(
        Verdict.BOUNCED if bounced else Verdict.RETRY,
        reason,
        slow_down=slow_down,
        retry_after=classifier.find_retry_after(reply.text) if slow_down or not bounced else None,
        next_host=stage in _HOST_STAGES
        or (stage is Stage.MAIL and (bounced or (reply.code == _SERVICE_CLOSING and not slow_down))),
    )


def _reason_at(stage: values.Stage, reason: str, *, bounced: bool) -> str:
    """What the reason means at this stage: who is unknown before the recipient is named is somebody else."""
    if stage is Stage.MAIL and reason == "mailbox_full":
        return "message_too_large"  # 552 is the code for both, and the mailbox is not known yet
    if reasons.REASONS[reason].fault is not Fault.ADDRESS:
        return reason
    if stage is Stage.MAIL:
        return "sender_rejected"
    if stage in _HOST_STAGES:
        return "refused" if bounced else "deferred"
    return reason if bounced else "mailbox_unavailable"


def _classify_failure(result: values.RecipientResult) -> Disposition:
    """No reply came, or none was waited for."""
    text = result.detail.lower()
    if result.permanent:
        reason = _permanent_reason(result.stage, text)
        return _disposition(Verdict.BOUNCED, reason, next_host=result.stage in _BEFORE_RECIPIENT)
    if result.in_doubt:
        return _disposition(Verdict.RETRY, "lost_after_content")
    return _disposition(Verdict.RETRY, _failure_reason(result.stage, text), next_host=result.stage in _BEFORE_RECIPIENT)


def _permanent_reason(stage: values.Stage, text: str) -> str:
    for phrase, reason in _PERMANENT_AT_ROUTE if stage is Stage.ROUTE else _PERMANENT:
        if phrase in text:
            return reason
    return "no_route" if stage is Stage.ROUTE else "refused_here"


def _failure_reason(stage: values.Stage, text: str) -> str:
    if stage is Stage.ROUTE:
        return "refused_here" if "error in this service" in text else "dns_failed"
    if stage is Stage.STARTTLS:
        return "tls_failed"
    for phrase, reason in _FAILURES_AT_CONNECT if stage is Stage.CONNECT else _FAILURES_IN_SESSION:
        if phrase in text:
            return reason
    return "connection_failed" if stage is Stage.CONNECT else "connection_lost"


def _disposition(
    verdict: Verdict,
    reason: str,
    *,
    slow_down: bool = False,
    retry_after: int | None = None,
    next_host: bool = False,
) -> Disposition:
    return Disposition(verdict, reasons.REASONS[reason].fault, reason, slow_down, retry_after, next_host)
