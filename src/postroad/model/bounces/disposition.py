"""The disposition of an attempt: delivered, bounced or to be retried, with fault and reason.

The verdict follows from the stage and the reply code alone: 2xx after the content delivers; 5xx bounces, before RCPT
only after the other hosts were tried; everything else is retried until the schedule ends. The reason of a reply comes
from the tables in `rules`, the reason of a failure without a reply from its `Cause`; text that Postroad wrote itself is
never read. The reason decides about suppression and slowing down, never about the verdict, with one exception: a fault
of this installation, `configuration`, is retried until it is corrected, whatever the reply code.

The fault `address` is given only to a bounce that concerns the recipient: never to a temporary failure, nor to what a
host replied before it knew the recipient.
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
Cause = values.Cause


class Verdict(StrEnum):
    """The result for a recipient. `classify` never returns FAILED: that is the end of the retry schedule."""

    DELIVERED = "delivered"
    BOUNCED = "bounced"
    RETRY = "retry"
    FAILED = "failed"


class Disposition(msgspec.Struct, frozen=True):
    """The disposition of one attempt for one recipient."""

    verdict: Verdict
    fault: Fault | None  # None when delivered
    reason: str  # a name of `reasons.REASONS`
    slow_down: bool = False  # the server asks for less: the provider queue backs off
    retry_after: int | None = None  # seconds, when the server names a time
    next_host: bool = False  # another host of the route should be tried first

    @property
    def is_configuration(self) -> bool:
        """Whether this installation has to be corrected: until then the retry schedule stands still."""
        return self.reason == reasons.CONFIGURATION


# Up to here the hosts of a route may answer differently; afterwards each answers for the recipient's domain.
_HOST_STAGES: Final = frozenset({Stage.CONNECT, Stage.BANNER, Stage.HELLO, Stage.STARTTLS, Stage.AUTH})
_BEFORE_RECIPIENT: Final = _HOST_STAGES | {Stage.MAIL}
# What an upstream that knows us would not say: log in first, or in another way (RFC 4954 section 6), and no relaying.
_LOGIN_CODES: Final = frozenset({530, 534, 535, 538})
_NOT_KNOWN_REASONS: Final = frozenset({"login_required", "relaying_denied"})
# RFC 3463 section 3.2: the status of an address, in whatever words.
_ADDRESS_STATUS: Final = "5.1."
# RFC 5321 section 3.8: the host ends the session, whatever the command. Often a connection was idle for too long.
_SERVICE_CLOSING: Final = 421

# The reason of a failure without a reply.
_CAUSE_REASONS: Final = {
    Cause.CONFIGURATION: reasons.CONFIGURATION,
    Cause.BAD_ADDRESS: "bad_address",
    Cause.DOMAIN_NOT_FOUND: "domain_not_found",
    Cause.NULL_MX: "null_mx",
    Cause.MAIL_LOOP: "mail_loop",
    Cause.NO_ROUTE: "no_route",
    Cause.DNS_FAILED: "dns_failed",
    Cause.PRIVATE_ADDRESS: "private_address",
    Cause.CONTENT_MISSING: "refused_here",
    Cause.WORKER_CRASHES: "refused_here",
    Cause.INTERNAL_ERROR: "refused_here",
    Cause.CONNECTION_REFUSED: "connection_refused",
    Cause.CONNECTION_TIMED_OUT: "connection_timed_out",
    Cause.HOST_UNREACHABLE: "host_unreachable",
    Cause.CONNECTION_FAILED: "connection_failed",
    Cause.TLS_FAILED: "tls_failed",
    Cause.CONNECTION_LOST: "connection_lost",
    Cause.REPLY_TIMED_OUT: "reply_timed_out",
    Cause.PROTOCOL_ERROR: "protocol_error",
    Cause.MESSAGE_TOO_LARGE: "message_too_large",
    Cause.EXTENSION_MISSING: "extension_missing",
    Cause.UNSENDABLE_ADDRESS: "refused_here",
}

_DELIVERED: Final = Disposition(Verdict.DELIVERED, fault=None, reason="delivered")


def classify(result: values.RecipientResult, *, is_upstream: bool = False) -> Disposition:
    """The disposition of one recipient's result; an upstream is a server that the operator has chosen."""
    reply = result.reply
    if reply is None:
        return _classify_failure(result)
    if result.cause is Cause.CONFIGURATION:
        return _configuration(result.stage)
    if is_upstream and _is_unknown_there(result.stage, reply):
        # Replies to MAIL and RCPT quote domains, and hosts that were asked: one account must not stop all mail so.
        is_certain = result.stage in _HOST_STAGES or reply.code in _LOGIN_CODES
        return _configuration(result.stage, slow_down=is_certain)
    kind = reply.code // 100
    if kind == 2 and result.stage is Stage.CONTENT:  # noqa: PLR2004 - RFC 5321 section 4.2.1
        return _DELIVERED
    if kind in {4, 5}:
        return _classify_refusal(result.stage, reply, bounced=kind == 5)  # noqa: PLR2004 - the same
    # A success code where only a refusal ends a transaction, or a code that SMTP does not have.
    return _disposition(Verdict.RETRY, "protocol_error", next_host=result.stage in _BEFORE_RECIPIENT)


def _is_unknown_there(stage: values.Stage, reply: values.Reply) -> bool:
    """Whether an upstream's refusal is about us, not about the message or its recipient."""
    if reply.code < 500 or stage in {Stage.DATA, Stage.CONTENT}:  # noqa: PLR2004 - RFC 5321 section 4.2.1
        return False
    if reply.enhanced.startswith(_ADDRESS_STATUS):
        return False
    return reply.code in _LOGIN_CODES or classifier.find_reason(reply) in _NOT_KNOWN_REASONS


def _configuration(stage: values.Stage, *, slow_down: bool = True) -> Disposition:
    """The provider queue backs off: others would fail in the same way, and wrong passwords lock accounts."""
    next_host = stage in _HOST_STAGES - {Stage.AUTH}
    return _disposition(Verdict.RETRY, reasons.CONFIGURATION, slow_down=slow_down, next_host=next_host)


def _classify_refusal(stage: values.Stage, reply: values.Reply, *, bounced: bool) -> Disposition:
    reason = _reason_at(stage, classifier.find_reason(reply), bounced=bounced)
    # Some hosts greylist with 5xx: pause, so that other messages do not bounce for the same reason.
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
    """What the reason means at this stage: before RCPT, an unknown address is not the recipient's."""
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
    """There is no reply: the server did not send one, or was not asked."""
    cause = result.cause or Cause.CONNECTION_LOST
    if cause is Cause.CONFIGURATION:
        return _configuration(result.stage)
    next_host = result.stage in _BEFORE_RECIPIENT
    if result.permanent:
        return _disposition(Verdict.BOUNCED, _CAUSE_REASONS[cause], next_host=next_host)
    if result.in_doubt:
        return _disposition(Verdict.RETRY, "lost_after_content")
    # A connection that ends during STARTTLS has failed at TLS, however it ended.
    reason = "tls_failed" if result.stage is Stage.STARTTLS else _CAUSE_REASONS[cause]
    return _disposition(Verdict.RETRY, reason, next_host=next_host)


def _disposition(
    verdict: Verdict,
    reason: str,
    *,
    slow_down: bool = False,
    retry_after: int | None = None,
    next_host: bool = False,
) -> Disposition:
    return Disposition(verdict, reasons.REASONS[reason].fault, reason, slow_down, retry_after, next_host)
