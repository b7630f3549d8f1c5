"""The causes of failures as people see them: the reasons of attempts, and what ends a recipient without an attempt.

Each has an explanation and one action. docs/bounces.md has the reasons; the actions are shown on the failures page.
"""

from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.bounces import reasons
from postroad.model.mail import statuses


class Action(StrEnum):
    """What to do about a cause."""

    SUPPRESS = "suppress"  # the addresses
    RESEND = "resend"  # the messages: the cause passes
    CHECK_DOMAIN = "check_domain"  # of the sender
    READ_GUIDANCE = "read_guidance"  # of the mailbox provider
    READ_REPLY = "read_reply"  # and change the message
    SEE_SUPPRESSIONS = "see_suppressions"  # the list that stopped the messages


# Causes of recipients that no attempt has ended. None of them is the name of a reason.
SUPPRESSED: Final = "suppressed"
UNSUBSCRIBED: Final = "unsubscribed"
EXPIRED: Final = "expired"
ENDED: Final = "retries_ended"
# Recorded by a version that did not count causes.
UNKNOWN: Final = ""


class FailureCause(msgspec.Struct, frozen=True):
    """A cause for people: its name, what is at fault, what it means, and what to do."""

    label: str
    fault: str
    explanation: str
    action: Action


_WITHOUT_ATTEMPT: Final = {
    SUPPRESSED: FailureCause(
        "Suppressed",
        "suppression list",
        "The address was on the suppression list, so the message was not sent to it. Remove such addresses from your "
        "own list, or remove the suppression if the address works again.",
        Action.SEE_SUPPRESSIONS,
    ),
    UNSUBSCRIBED: FailureCause(
        "Unsubscribed",
        "unsubscribe",
        "The recipient has unsubscribed from the list of the message, so it was not sent. Remove such addresses from "
        "your own list.",
        Action.SEE_SUPPRESSIONS,
    ),
    EXPIRED: FailureCause(
        "Expired",
        "time limit",
        "The message was not delivered before the time at which it expires.",
        Action.READ_REPLY,
    ),
    ENDED: FailureCause(
        "Retries ended",
        reasons.FAULT_LABELS[reasons.Fault.NETWORK],
        "The mail servers were unreachable until the retry schedule ended, or the operator ended delivery.",
        Action.READ_REPLY,
    ),
    UNKNOWN: FailureCause(
        "Cause not recorded",
        "unknown",
        "These results were recorded by a version of Postroad that did not count causes.",
        Action.READ_REPLY,
    ),
}
_BY_FAULT: Final = {
    reasons.Fault.ADDRESS: Action.SUPPRESS,
    reasons.Fault.CONTENT: Action.READ_REPLY,
    reasons.Fault.POLICY: Action.READ_REPLY,
    reasons.Fault.REPUTATION: Action.READ_GUIDANCE,
    reasons.Fault.RATE: Action.RESEND,
    reasons.Fault.NETWORK: Action.RESEND,
    reasons.Fault.OURS: Action.READ_REPLY,
}
# Reasons whose action is not that of their fault.
_BY_REASON: Final = {
    "spam_suspected": Action.READ_GUIDANCE,
    "mailbox_full": Action.RESEND,
    "mailbox_unavailable": Action.RESEND,
    "not_authenticated": Action.CHECK_DOMAIN,
    "sender_rejected": Action.CHECK_DOMAIN,
    "policy_refused": Action.READ_GUIDANCE,
}
# Address faults that DNS tells, mostly: only the reply of a receiving server suppresses an address.
FOUND_IN_DNS: Final = frozenset({"domain_not_found", "null_mx"})
# What the providers tell senders: address and title of the page.
GUIDANCE: Final = {
    "google": ("https://support.google.com/a/answer/81126", "Email sender guidelines"),
    "microsoft": ("https://sendersupport.olc.protection.outlook.com/pm/", "Outlook.com Postmaster"),
    "yahoo": ("https://senders.yahooinc.com/best-practices/", "Sender best practices"),
    "apple": ("https://support.apple.com/en-us/102322", "Postmaster information for iCloud Mail"),
}


def of_outcome(reason: str | None, status: statuses.RecipientStatus) -> str:
    """The cause of a recipient that bounced or failed; `reason` is None without an attempt and a cause of its own."""
    if reason is not None:
        return reason
    if status is statuses.RecipientStatus.BOUNCED:
        return SUPPRESSED
    return EXPIRED if status is statuses.RecipientStatus.EXPIRED else ENDED


_ACRONYMS: Final = {"ip": "IP", "dns": "DNS", "tls": "TLS", "mx": "MX"}


def describe(cause: str, provider: str) -> FailureCause:
    """A cause at a provider, in words. Guidance is the action only where the provider has some."""
    known = _WITHOUT_ATTEMPT.get(cause)
    if known is not None:
        return known
    reason = reasons.REASONS.get(cause)
    fault = reason.fault if reason else None
    action = _BY_REASON.get(cause) or (_BY_FAULT[fault] if fault else Action.READ_REPLY)
    if action is Action.READ_GUIDANCE and provider not in GUIDANCE:
        action = Action.READ_REPLY
    return FailureCause(
        _label(cause), reasons.FAULT_LABELS[fault] if fault else "unknown", reasons.explain(cause), action
    )


def _label(cause: str) -> str:
    """Its name as a title: acronyms keep their capitals."""
    first, *others = (_ACRONYMS.get(word, word) for word in cause.split("_"))
    return " ".join([first[0].upper() + first[1:], *others])


def search_terms(cause: str) -> str:
    match cause:
        case "suppressed" | "unsubscribed" | "expired":
            return f"outcome:{cause}"
        case "retries_ended":
            return f"cause:{cause}"
        case _:
            terms = "outcome:bounced OR outcome:failed"
            return f"{terms} cause:{cause}" if cause in reasons.REASONS else terms


def provider_term(provider: str) -> str:
    return f"provider:{provider}" if provider else ""
