"""The disposition of an attempt: delivered, bounced or to be retried, with fault and reason.

The verdict follows from the stage and the reply code alone: 2xx after the content delivers; 5xx bounces, before RCPT
only after the other hosts were tried; everything else is retried until the schedule ends. The reason of a reply comes
from the tables in `rules`, the reason of a failure without a reply from its `Cause`; text that Postroad wrote itself is
never read. The reason decides about suppression and slowing down, never about the verdict, with one exception: a fault
of this installation, `configuration`, is retried until it is corrected, whatever the reply code.

The fault `address` is given only to a bounce that concerns the recipient: never to a temporary failure, nor to what a
host replied before it knew the recipient.
"""

import re
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.bounces import reasons, rules
from postroad.protocol.smtp import values

# Classifies a server's reply: its reason by the tables of `rules`, and the time it names for another attempt.
#
# A reply is foreign text, so the work is bounded: only its beginning is read, each word is looked up once, and patterns
# have bounded repetitions only.

# The longest replies of large providers have about 500 characters, with the reason before the advice.
_READ_CHARACTERS: Final = 600

_WORD: Final = re.compile(r"[^\W_]+")
_BETWEEN: Final = re.compile(r"[\s<>()\[\]:;,]")
# qmail and its kin write the enhanced code at the end, `no mailbox here by that name. (#5.1.1)`; others write `#5.1.0`.
_TRAILING_CODE: Final = re.compile(r"[(\[#]([45]\.\d{1,3}\.\d{1,3})(?!\.?\d)")

# `try again in 5 minutes`, `Greylisted for 300 seconds`, `please come back in 00:04:59`, `Retry-After: 120`. A figure
# counts only after words about another attempt: `100 messages in 60 minutes` is a limit, not a time to wait.
_TIME: Final = re.compile(
    r"(?:again|retry|wait|come back|resend|greylist\w{0,3}|graylist\w{0,3}|delay\w{0,3}|later|deferred)"
    r"[^0-9/]{0,40}(?:(?P<clock>\d{1,2}:\d\d:\d\d)|(?P<number>\d{1,6})\s{0,2}(?P<unit>s|m|h|d)"
    r"(?:ecs?|econds?|ins?|inutes?|rs?|ours?|ays?|\(s\))?\b)"
    r"|retry.after[\s:=]{1,3}(?P<seconds>\d{1,6})(?![\d:])"
)
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
# The default schedule is over by then.
_MAX_RETRY_AFTER_SECONDS: Final = 86_400


class _Phrases:
    """A table of phrases, indexed by their first word; a phrase of one word also matches as a prefix."""

    def __init__(self, table: dict[str, str]) -> None:
        self._reasons: list[str] = []
        self._by_word: dict[str, list[tuple[int, str]]] = {}
        self._by_beginning: dict[str, list[tuple[int, str]]] = {}
        for reason, phrases in table.items():
            for phrase in phrases.split(","):
                self._add(phrase.strip(), reason)

    def _add(self, phrase: str, reason: str) -> None:
        first, _, rest = phrase.partition(" ")
        entry = (len(self._reasons), phrase)
        if rest:
            self._by_word.setdefault(first, []).append(entry)
        else:
            self._by_beginning.setdefault(first[:3], []).append(entry)
        self._reasons.append(reason)

    def find(self, words: list[str]) -> str | None:
        """The reason of the matching phrase that comes first in the table."""
        text, at, best = " ".join(words), 0, len(self._reasons)
        for word in words:
            for entries in (self._by_word.get(word, ()), self._by_beginning.get(word[:3], ())):
                for number, phrase in entries:
                    if number >= best:
                        break
                    if text.startswith(phrase, at):
                        best = number
            at += len(word) + 1
        return self._reasons[best] if best < len(self._reasons) else None


_PHRASES: Final = _Phrases(rules.PHRASES)
_VAGUE_PHRASES: Final = _Phrases(rules.VAGUE_PHRASES)


def find_reason(reply: values.Reply) -> str:
    """The reason of a 4xx or 5xx reply, by the order of tables that `rules` explains."""
    enhanced = reply.enhanced or _trailing_code(reply)
    detail = enhanced[2:]
    words = _words_of(reply.text[:_READ_CHARACTERS], enhanced)
    return (
        rules.SURE_CODES.get(detail)
        or _PHRASES.find(words)
        or rules.LIKELY_CODES.get(detail)
        or _VAGUE_PHRASES.find(words)
        or rules.SUBJECTS.get(detail.partition(".")[0])
        or rules.BASIC_CODES.get(reply.code)
        or ("refused" if reply.code >= 500 else "deferred")  # noqa: PLR2004 - RFC 5321 section 4.2.1
    )


def find_retry_after(text: str) -> int | None:
    """After how many seconds the server wants another attempt; None when it does not say."""
    found = _TIME.search(text[:_READ_CHARACTERS].lower())
    if found is None:
        return None
    if found["clock"]:
        hours, minutes, seconds = map(int, found["clock"].split(":"))
        named = hours * 3600 + minutes * 60 + seconds
    elif found["number"]:
        named = int(found["number"]) * _UNIT_SECONDS[found["unit"]]
    else:
        named = int(found["seconds"])
    return min(named, _MAX_RETRY_AFTER_SECONDS)


def _trailing_code(reply: values.Reply) -> str:
    found = _TRAILING_CODE.search(reply.text[:_READ_CHARACTERS])
    return found[1] if found and int(found[1][0]) == reply.code // 100 else ""


def _words_of(text: str, enhanced: str) -> list[str]:
    """The words of the code and of the text, without addresses: those are not the server's wording."""
    kept = [piece for piece in _BETWEEN.split(text.lower()) if "@" not in piece and piece != enhanced]
    return _WORD.findall(f"{enhanced} {' '.join(kept)}")


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
    return reply.code in _LOGIN_CODES or find_reason(reply) in _NOT_KNOWN_REASONS


def _configuration(stage: values.Stage, *, slow_down: bool = True) -> Disposition:
    """The provider queue backs off: others would fail in the same way, and wrong passwords lock accounts."""
    next_host = stage in _HOST_STAGES - {Stage.AUTH}
    return _disposition(Verdict.RETRY, reasons.CONFIGURATION, slow_down=slow_down, next_host=next_host)


def _classify_refusal(stage: values.Stage, reply: values.Reply, *, bounced: bool) -> Disposition:
    reason = _reason_at(stage, find_reason(reply), bounced=bounced)
    # Some hosts greylist with 5xx: pause, so that other messages do not bounce for the same reason.
    slow_down = reasons.REASONS[reason].slow_down or (bounced and reason == "greylisted")
    return _disposition(
        Verdict.BOUNCED if bounced else Verdict.RETRY,
        reason,
        slow_down=slow_down,
        retry_after=find_retry_after(reply.text) if slow_down or not bounced else None,
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
