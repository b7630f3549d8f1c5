"""Why a recipient was not delivered: every reason that a judgement can give, whose fault it is, and what to do.

Names are for programs and never change their meaning; explanations are for people. Only an address that does not exist
or is switched off may have the fault `address`, because such faults put an address on the suppression list. Whether
it is tried again is the verdict's to say, so an explanation is as true of the last attempt as of the first.
docs/bounces.md shows this table.
"""

from enum import StrEnum
from typing import Final

import msgspec


class Fault(StrEnum):
    """What a refusal is about."""

    ADDRESS = "address"  # the recipient's address does not exist or is switched off
    CONTENT = "content"  # this message
    POLICY = "policy"  # a rule of the destination or the state of the mailbox
    REPUTATION = "reputation"  # what the destination thinks of our addresses or of the sender's domain
    RATE = "rate"  # too much at once
    NETWORK = "network"  # DNS, connections, a destination in trouble
    OURS = "ours"  # this installation or the sender's set-up


# The same for people, after "it is about".
FAULT_LABELS: Final = {
    Fault.ADDRESS: "the address",
    Fault.CONTENT: "the message",
    Fault.POLICY: "the mailbox or a rule there",
    Fault.REPUTATION: "the sender's reputation",
    Fault.RATE: "too much at once",
    Fault.NETWORK: "the way there",
    Fault.OURS: "this service's set-up",
}


class Reason(msgspec.Struct, frozen=True):
    """`slow_down`: the destination wants less from us, so the whole pool backs off."""

    fault: Fault | None
    explanation: str
    slow_down: bool = False


def _address(explanation: str) -> Reason:
    return Reason(Fault.ADDRESS, explanation)


def _content(explanation: str) -> Reason:
    return Reason(Fault.CONTENT, explanation)


def _policy(explanation: str) -> Reason:
    return Reason(Fault.POLICY, explanation)


def _reputation(explanation: str, *, slow_down: bool = False) -> Reason:
    return Reason(Fault.REPUTATION, explanation, slow_down)


def _rate(explanation: str, *, slow_down: bool = False) -> Reason:
    return Reason(Fault.RATE, explanation, slow_down)


def _network(explanation: str) -> Reason:
    return Reason(Fault.NETWORK, explanation)


def _ours(explanation: str) -> Reason:
    return Reason(Fault.OURS, explanation)


REASONS: Final = {
    "delivered": Reason(None, "The destination has taken the message."),
    # The address.
    "unknown_address": _address(
        "There is no such mailbox at the destination. Check the address; do not send to it again."
    ),
    "disabled_address": _address("The mailbox exists no more or is switched off. Do not send to it again."),
    "moved_address": _address("The mailbox has moved and the destination does not forward. Ask for the new address."),
    "bad_address": _address("The destination says that the address is malformed. Check how it is written."),
    "domain_not_found": _address("The domain of the address does not exist. Check how it is written."),
    "null_mx": _address("The domain of the address declares that it takes no mail. Use another address."),
    # The message.
    "message_too_large": _content(
        "The message is larger than the destination takes. Link to large files instead of attaching them."
    ),
    "spam_suspected": _content(
        "The destination takes the message for spam. Change its wording and links, and send only to people who "
        "asked for it."
    ),
    "malware_suspected": _content(
        "The destination found a dangerous file or attachment in the message. Remove it or link to it."
    ),
    "link_blocked": _content(
        "The message links to a domain that is on a block list. Remove the link, or have the domain removed from "
        "the list."
    ),
    "bad_format": _content(
        "The destination says that the message is malformed. Check its headers and the length of its lines."
    ),
    "content_refused": _content(
        "The destination refuses the content of the message without saying more. Change it before sending again."
    ),
    "extension_missing": _content(
        "The message needs a feature that the destination does not offer, such as 8BITMIME or SMTPUTF8. Send it "
        "in plain ASCII."
    ),
    # Rules of the destination, and the state of the mailbox.
    "mailbox_full": _policy("The mailbox is full. Its owner has to make room; later messages may arrive."),
    "mailbox_unavailable": _policy(
        "The mailbox cannot take mail at the moment, or the destination does not want to say why not."
    ),
    "not_authenticated": _policy(
        "SPF, DKIM or DMARC of the sender's domain failed at the destination. Check the domain's DNS records."
    ),
    "sender_not_allowed": _policy(
        "The recipient takes mail from certain senders only, and this one is not among them. Ask the recipient to"
        " allow it."
    ),
    "relaying_denied": _policy(
        "The host that DNS names for this domain does not take its mail. The domain's owner has to mend the MX records."
    ),
    "encryption_required": _policy(
        "The destination takes mail over encrypted connections only. Allow TLS in the settings of delivery."
    ),
    "no_mail_service": _policy(
        "The host that DNS names for this domain takes no mail at all. The domain's owner has to mend the MX records."
    ),
    "policy_refused": _policy(
        "A rule of the destination stands against the message. Its reply may name it; its postmaster can tell more."
    ),
    "refused": _policy("The destination refuses for good and gives no reason that we know. Read its reply."),
    "deferred": _policy("The destination puts the message off and gives no reason that we know."),
    # What the destination thinks of us.
    "ip_blocked": _reputation(
        "The destination or a block list that it uses blocks the address of this host. Find out why, and ask to "
        "be removed.",
        slow_down=True,
    ),
    "domain_blocked": _reputation(
        "The sender's domain is blocked or has a bad name at the destination. Send only wanted mail, and ask to "
        "be removed from block lists."
    ),
    "low_reputation": _reputation(
        "The destination does not trust this sender enough. Send less and only wanted mail; trust comes back with time."
    ),
    # Too much at once.
    "rate_limited": _rate(
        "The destination takes no more from us for now. Mail to it is slowed down on its own.",
        slow_down=True,
    ),
    "too_many_connections": _rate(
        "The destination wants fewer connections at once. Mail to it is slowed down on its own.",
        slow_down=True,
    ),
    "destination_busy": _rate("The destination is overloaded. Mail to it is slowed down on its own.", slow_down=True),
    "mailbox_busy": _rate(
        "This one mailbox gets more mail at the moment than its provider allows. Send to it less often."
    ),
    "too_many_recipients": _rate("The destination takes fewer recipients in one go than it was given."),
    "session_limit": _rate("The destination takes no more messages over one connection."),
    "greylisted": _rate("The destination makes unknown senders wait once, and usually takes the message later."),
    # The way there.
    "dns_failed": _network("DNS gave no usable answer for the recipient's domain."),
    "no_route": _network(
        "No host can be found that takes mail for the recipient's domain. Its owner has to mend the MX records."
    ),
    "connection_refused": _network("The destination's host refuses connections."),
    "connection_timed_out": _network("The destination's host does not answer."),
    "host_unreachable": _network(
        "There is no way to the destination's host. If that is so for all hosts, check this host's network."
    ),
    "connection_failed": _network("No connection to the destination's host could be made."),
    "connection_lost": _network("The destination broke the connection off."),
    "reply_timed_out": _network("The destination stopped answering."),
    "tls_failed": _network(
        "The encrypted connection that is asked for could not be made, or the certificate is wrong."
    ),
    "protocol_error": _network("The destination does not answer as SMTP asks."),
    "lost_after_content": _network(
        "The connection was lost before the destination confirmed the message. It may have arrived; another attempt "
        "may deliver it twice."
    ),
    "destination_trouble": _network("The destination has a fault of its own."),
    "destination_unreachable": _network("The destination cannot pass the message on to the host behind it."),
    "mail_loop": _network(
        "The message runs in a circle at the destination. The domain's owner has to mend the routing."
    ),
    # This installation, and the sender's set-up.
    "sender_rejected": _ours(
        "The destination does not accept the envelope sender. Check that its domain exists in DNS and takes mail."
    ),
    "no_reverse_dns": _ours(
        "The address of this host has no proper name in DNS. Give it a PTR record that leads back to it."
    ),
    "hello_rejected": _ours(
        "The destination does not accept the name that this host gives itself. Set delivery.hostname to its name "
        "in DNS."
    ),
    "login_required": _ours("The destination asks for a login. If it is the smarthost, it has to allow this host."),
    "command_refused": _ours(
        "The destination does not understand or allow an SMTP command of ours. Read its reply, and report it."
    ),
    "refused_here": _ours(
        "The message or the address cannot be sent as it is, so it was not tried. The attempt says why."
    ),
}


def explain(reason: str) -> str:
    """In plain words what happened and what to do. History may hold names that a later version has dropped."""
    known = REASONS.get(reason)
    return known.explanation if known else "This reason is not known to this version. Read the destination's reply."
