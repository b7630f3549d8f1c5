"""The outcome of a simulated recipient, chosen by the start of its local part, ignoring case.

`bounce@…`, `bounce-17@…` and `BouncedAgain@…` all bounce; a local part with none of these prefixes is delivered.
"""

from enum import StrEnum
from typing import Final

import msgspec

from postroad.protocol.smtp import values


class SimulatedOutcome(StrEnum):
    """An outcome; the value is the prefix of the local part."""

    BOUNCE = "bounce"
    BLOCKED = "blocked"
    DEFER = "defer"
    FAIL = "fail"
    SLOW = "slow"
    DROP = "drop"
    DELIVER = ""


# How often a `defer…` recipient is deferred before it is accepted.
DEFERRALS: Final = 2
# Long enough to notice, shorter than any client timeout.
SLOW_SECONDS: Final = 3.0
# The host of a simulated attempt; no real one has a name like this (RFC 6761 section 6.4).
HOST: Final = "simulator.invalid"

ACCEPTED: Final = values.Reply(250, "OK", "2.1.5")
QUEUED: Final = values.Reply(250, "OK: queued by the simulator", "2.0.0")
DROPPED: Final = values.RecipientResult(
    values.Stage.DATA, cause=values.Cause.CONNECTION_LOST, detail="the destination closed the connection"
)
GREYLISTED: Final = values.Reply(451, "Recipient address rejected: greylisted, please try again later", "4.7.1")
# Worded as real servers do, so that bounce classification sees realistic replies.
REFUSALS: Final = {
    SimulatedOutcome.BOUNCE: values.Reply(
        550, "Recipient address rejected: user unknown in virtual mailbox table", "5.1.1"
    ),
    SimulatedOutcome.BLOCKED: values.Reply(550, "Message rejected due to local policy: the sender is blocked", "5.7.1"),
    SimulatedOutcome.FAIL: values.Reply(451, "Temporary lookup failure, please try again later", "4.3.0"),
}


def outcome_of(address: str) -> SimulatedOutcome:
    """The outcome of a recipient."""
    name = address.lower()
    # The empty prefix of DELIVER is last and matches every name.
    return next(outcome for outcome in SimulatedOutcome if name.startswith(outcome))


class SimulatedAttempt(msgspec.Struct, frozen=True):
    """The result of an attempt that was not made: how long it takes, and what the host replied."""

    result: values.RecipientResult
    host: str = HOST
    seconds: float = 0.0


def attempt(address: str, *, attempts: int) -> SimulatedAttempt:
    """The attempt after this many earlier ones."""
    outcome = outcome_of(address)
    refusal = REFUSALS.get(outcome)
    if outcome is SimulatedOutcome.DEFER and attempts < DEFERRALS:
        refusal = GREYLISTED
    if refusal is not None:
        return SimulatedAttempt(values.RecipientResult(values.Stage.RECIPIENT, refused(address, refusal)))
    if outcome is SimulatedOutcome.DROP:
        return SimulatedAttempt(DROPPED)
    seconds = SLOW_SECONDS if outcome is SimulatedOutcome.SLOW else 0.0
    return SimulatedAttempt(values.RecipientResult(values.Stage.CONTENT, QUEUED), seconds=seconds)


def refused(address: str, refusal: values.Reply) -> values.Reply:
    """A refusal that names the recipient, as most servers do."""
    return msgspec.structs.replace(refusal, text=f"<{address}>: {refusal.text}")


# How the simulator imitates a mailbox provider: its replies, in its own wording, to a message of a test key.
#
# The texts are written after what these providers reply in such a case. The classifier reads them as it reads theirs,
# so a simulated attempt has the cause, the retries and the result of a real one (docs/testing.md, "Providers").


class SimulatedProvider(StrEnum):
    """A provider that can be imitated."""

    GOOGLE = "google"
    MICROSOFT = "microsoft"
    YAHOO = "yahoo"
    APPLE = "apple"


class ProviderBehaviour(StrEnum):
    """What the provider does."""

    ACCEPTED = "accepted"
    SLOW = "slow"
    RATE_LIMITED = "rate_limited"
    GREYLISTED = "greylisted"
    UNAVAILABLE = "unavailable"
    MAILBOX_FULL = "mailbox_full"
    UNKNOWN_USER = "unknown_user"
    BLOCKED = "blocked"
    UNAUTHENTICATED = "unauthenticated"


# To how many attempts the provider replies so before it accepts the message; to the others it always does.
REFUSED_ATTEMPTS: Final = {ProviderBehaviour.RATE_LIMITED: 2, ProviderBehaviour.GREYLISTED: 1}
# What the provider decides by the content, which it has then; it decides the others by the recipient.
_AFTER_CONTENT: Final = frozenset(
    {ProviderBehaviour.ACCEPTED, ProviderBehaviour.BLOCKED, ProviderBehaviour.UNAUTHENTICATED}
)

# 192.0.2.1 is an address for documentation (RFC 5737), in the place of the sender's.
REPLIES: Final = {
    SimulatedProvider.GOOGLE: {
        ProviderBehaviour.ACCEPTED: values.Reply(250, "OK 1794866401 d9443c01a7336simulated - gsmtp", "2.0.0"),
        ProviderBehaviour.RATE_LIMITED: values.Reply(
            421,
            "Gmail has detected an unusual rate of mail originating from your IP address [192.0.2.1]. To protect our "
            "users, mail sent from it has been temporarily rate limited - gsmtp",
            "4.7.28",
        ),
        ProviderBehaviour.GREYLISTED: values.Reply(
            451, "Mail from a first time sender is greylisted; please try again later - gsmtp", "4.7.0"
        ),
        ProviderBehaviour.MAILBOX_FULL: values.Reply(
            452, "The recipient's inbox is out of storage space; please try again later - gsmtp", "4.2.2"
        ),
        ProviderBehaviour.UNKNOWN_USER: values.Reply(
            550,
            "The email account that you tried to reach does not exist. Please check the recipient's address for typos "
            "or unnecessary spaces - gsmtp",
            "5.1.1",
        ),
        ProviderBehaviour.BLOCKED: values.Reply(
            550,
            "Gmail has detected that this message is likely unsolicited mail. To reduce the amount of spam sent to "
            "Gmail, this message has been blocked - gsmtp",
            "5.7.1",
        ),
        ProviderBehaviour.UNAUTHENTICATED: values.Reply(
            550,
            "Your email has been blocked because the sender is unauthenticated. Gmail requires all senders to "
            "authenticate with either SPF or DKIM - gsmtp",
            "5.7.26",
        ),
    },
    SimulatedProvider.MICROSOFT: {
        ProviderBehaviour.ACCEPTED: values.Reply(250, "<simulated> [InternalId=1] Queued mail for delivery", "2.6.0"),
        ProviderBehaviour.RATE_LIMITED: values.Reply(
            421,
            "RP-001 The mail server IP connecting to Outlook.com has exceeded the rate limit allowed on this server",
        ),
        ProviderBehaviour.GREYLISTED: values.Reply(
            451, "Temporarily greylisted: [192.0.2.1] is new to this service, please try again later", "4.7.1"
        ),
        ProviderBehaviour.MAILBOX_FULL: values.Reply(
            554, "mailbox full; the recipient has exceeded their quota", "5.2.2"
        ),
        ProviderBehaviour.UNKNOWN_USER: values.Reply(
            550, "Requested action not taken: mailbox unavailable (S2017062302)", "5.5.0"
        ),
        ProviderBehaviour.BLOCKED: values.Reply(
            550,
            "Unfortunately, messages from [192.0.2.1] weren't sent. Part of your network is on our block list (S3150)",
            "5.7.1",
        ),
        ProviderBehaviour.UNAUTHENTICATED: values.Reply(
            550, "Access denied, the sending domain doesn't meet the required authentication level", "5.7.515"
        ),
    },
    SimulatedProvider.YAHOO: {
        ProviderBehaviour.ACCEPTED: values.Reply(250, "ok dirdel"),
        ProviderBehaviour.RATE_LIMITED: values.Reply(
            421,
            "[TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints",
            "4.7.0",
        ),
        ProviderBehaviour.GREYLISTED: values.Reply(
            451, "[GL01] Message from (192.0.2.1) temporarily deferred", "4.7.1"
        ),
        ProviderBehaviour.MAILBOX_FULL: values.Reply(
            552, "Requested mail action aborted: the recipient's mailbox is full", "5.2.2"
        ),
        ProviderBehaviour.UNKNOWN_USER: values.Reply(
            554, "delivery error: dd This user doesn't have a yahoo.com account"
        ),
        ProviderBehaviour.BLOCKED: values.Reply(
            553, "[BL21] Connections will not be accepted from 192.0.2.1, because it is on a block list", "5.7.1"
        ),
        ProviderBehaviour.UNAUTHENTICATED: values.Reply(
            554, "Message not accepted for policy reasons: it fails the DMARC policy of its sender", "5.7.9"
        ),
    },
    SimulatedProvider.APPLE: {
        ProviderBehaviour.ACCEPTED: values.Reply(250, "Ok: queued as 4S1mULaT3D", "2.0.0"),
        ProviderBehaviour.RATE_LIMITED: values.Reply(
            450, "[TR01] Too many messages from your host; slow down", "4.7.1"
        ),
        ProviderBehaviour.GREYLISTED: values.Reply(
            450, "Recipient address rejected: greylisted, try again later", "4.2.0"
        ),
        ProviderBehaviour.MAILBOX_FULL: values.Reply(552, "The user's mailbox is over quota", "5.2.2"),
        ProviderBehaviour.UNKNOWN_USER: values.Reply(550, "Recipient address rejected: user does not exist", "5.1.1"),
        ProviderBehaviour.BLOCKED: values.Reply(554, "[HM08] Message rejected due to local policy", "5.7.1"),
        ProviderBehaviour.UNAUTHENTICATED: values.Reply(
            550, "[CS01] Message rejected due to the DMARC policy of the sender's domain", "5.7.1"
        ),
    },
}


def provider_of(provider: SimulatedProvider, behaviour: ProviderBehaviour) -> str:
    """What the queue stores."""
    return f"{provider}/{behaviour}"


_PLAYS: Final = {
    provider_of(provider, behaviour): (provider, behaviour)
    for provider in SimulatedProvider
    for behaviour in ProviderBehaviour
}


def provider_attempt(name: str, *, attempts: int) -> SimulatedAttempt | None:
    """The attempt after this many earlier ones; None for a name that this version does not know."""
    if name not in _PLAYS:
        return None
    provider, behaviour = _PLAYS[name]
    host = f"{provider}.{HOST}"
    if behaviour is ProviderBehaviour.UNAVAILABLE:
        timed_out = values.RecipientResult(
            values.Stage.CONNECT, cause=values.Cause.CONNECTION_TIMED_OUT, detail="the connection attempt timed out"
        )
        return SimulatedAttempt(timed_out, host)
    seconds = SLOW_SECONDS if behaviour is ProviderBehaviour.SLOW else 0.0
    if behaviour is ProviderBehaviour.SLOW or attempts >= REFUSED_ATTEMPTS.get(behaviour, attempts + 1):
        behaviour = ProviderBehaviour.ACCEPTED
    stage = values.Stage.CONTENT if behaviour in _AFTER_CONTENT else values.Stage.RECIPIENT
    return SimulatedAttempt(values.RecipientResult(stage, REPLIES[provider][behaviour]), host, seconds)
