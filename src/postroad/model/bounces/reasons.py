"""Why a recipient was not delivered: every reason of a disposition, with its fault and what to do.

Names are for programs and never change their meaning; explanations are for people. Only an address that does not exist
or is disabled has the fault `address`, because that fault adds it to the suppression list. Whether delivery is retried
is the verdict, so an explanation is as true of the last attempt as of the first. docs/bounces.md shows this table.
"""

from enum import StrEnum
from typing import Final

import msgspec


class Fault(StrEnum):
    """What caused a refusal."""

    ADDRESS = "address"  # the recipient's address does not exist or is disabled
    CONTENT = "content"  # this message
    POLICY = "policy"  # the receiving server's policy or the state of the mailbox
    REPUTATION = "reputation"  # of our IP addresses or of the sender's domain
    RATE = "rate"  # too much at once
    NETWORK = "network"  # DNS, connections, an error at the receiving server
    OURS = "ours"  # this installation or the sender's configuration


# The same for people, after "Category:".
FAULT_LABELS: Final = {
    Fault.ADDRESS: "address",
    Fault.CONTENT: "message content",
    Fault.POLICY: "mailbox or receiver policy",
    Fault.REPUTATION: "sender reputation",
    Fault.RATE: "rate limit",
    Fault.NETWORK: "network",
    Fault.OURS: "configuration of this service",
}


# A fault of this installation that only its operator can correct: the retry schedule stands still meanwhile.
CONFIGURATION: Final = "configuration"
# The server refuses the address that mail comes from, whatever the message.
IP_BLOCKED: Final = "ip_blocked"


class Reason(msgspec.Struct, frozen=True):
    """`slow_down`: the provider asks for less, so the whole provider queue backs off."""

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


def _ours(explanation: str, *, slow_down: bool = False) -> Reason:
    return Reason(Fault.OURS, explanation, slow_down)


REASONS: Final = {
    "delivered": Reason(None, "Accepted by the receiving server."),
    # The address.
    "unknown_address": _address(
        "The mailbox does not exist. Check the spelling. If it is right, remove it from your list."
    ),
    "disabled_address": _address("The mailbox was closed or disabled. Do not send to it again."),
    "moved_address": _address("The mailbox has moved and mail is not forwarded. Ask for the new address."),
    "bad_address": _address("The address is malformed. Check its spelling."),
    "domain_not_found": _address("The domain of the address does not exist. Check its spelling."),
    "null_mx": _address("The domain of the address accepts no mail (null MX). Use another address."),
    # The message.
    "message_too_large": _content(
        "The message is larger than the receiving server allows. Link to large files instead of attaching them."
    ),
    "spam_suspected": _content(
        "The receiving server classified the message as spam. Change its wording and links, and send only to people "
        "who asked for it."
    ),
    "malware_suspected": _content("The receiving server found malware in the message. Remove the file or link to it."),
    "link_blocked": _content(
        "The message links to a domain on a blocklist. Remove the link, or have the domain removed from the list."
    ),
    "bad_format": _content(
        "The receiving server says that the message is malformed. Check its headers and the length of its lines."
    ),
    "content_refused": _content(
        "The receiving server rejected the content without giving details. Change it before sending again."
    ),
    "extension_missing": _content(
        "The message needs an SMTP extension that the receiving server does not offer, such as 8BITMIME or SMTPUTF8. "
        "Send it in plain ASCII."
    ),
    # The receiving server's policy, and the state of the mailbox.
    "mailbox_full": _policy("The mailbox is full. Later messages may arrive when its owner has made room."),
    "mailbox_unavailable": _policy(
        "The mailbox cannot receive mail at the moment, or the receiving server does not say why."
    ),
    "not_authenticated": _policy("SPF, DKIM or DMARC failed for the sender's domain. Check the domain's DNS records."),
    "sender_not_allowed": _policy(
        "The recipient accepts mail from certain senders only, and this one is not allowed. Ask the recipient to "
        "allow it."
    ),
    "relaying_denied": _policy(
        "The host in the domain's MX records does not accept its mail. The domain's owner has to correct the MX "
        "records."
    ),
    "encryption_required": _policy(
        "The receiving server accepts mail over encrypted connections only. Allow TLS in the [delivery] settings."
    ),
    "no_mail_service": _policy(
        "The host in the domain's MX records accepts no mail. The domain's owner has to correct the MX records."
    ),
    "policy_refused": _policy(
        "Their mail server's policy rejected it. Read the reply; if it is unclear, contact their postmaster."
    ),
    "refused": _policy("The receiving server rejected the message for an unrecognized reason. Read its reply."),
    "deferred": _policy("The receiving server deferred the message for an unrecognized reason. Read its reply."),
    # Reputation.
    IP_BLOCKED: _reputation(
        "The provider, or a blocklist that it uses, blocks this server's IP address. Find out why, and ask to be "
        "removed.",
        slow_down=True,
    ),
    "domain_blocked": _reputation(
        "The sender's domain is blocked or has a poor reputation with this provider. Send only wanted mail, and ask "
        "to be removed from blocklists."
    ),
    "low_reputation": _reputation(
        "The sender has a poor reputation with this provider. Send less and only wanted mail; reputation recovers "
        "with time."
    ),
    # Too much at once.
    "rate_limited": _rate(
        "The provider limits the sending rate. Mail to it is slowed down automatically.",
        slow_down=True,
    ),
    "too_many_connections": _rate(
        "The provider limits the number of connections. Mail to it is slowed down automatically.",
        slow_down=True,
    ),
    "destination_busy": _rate(
        "The receiving server is overloaded. Mail to it is slowed down automatically.", slow_down=True
    ),
    "mailbox_busy": _rate("This mailbox receives more mail than its provider allows. Send to it less often."),
    "too_many_recipients": _rate("The receiving server accepts fewer recipients in one transaction."),
    "session_limit": _rate("The receiving server accepts no more messages over one connection."),
    "greylisted": _rate(
        "The receiving server defers mail from unknown senders (greylisting), and usually accepts it later."
    ),
    # The network.
    "dns_failed": _network("DNS returned no usable answer for the recipient's domain."),
    "private_address": _network(
        "The mail hosts of the recipient's domain have private addresses, to which this server does not deliver. "
        "Add the network to delivery.allow_private if it is yours."
    ),
    "no_route": _network("No mail host was found for the recipient's domain. Its owner has to correct the MX records."),
    "connection_refused": _network("The receiving server refuses connections."),
    "connection_timed_out": _network("The connection to the receiving server timed out."),
    "host_unreachable": _network(
        "The receiving server is unreachable. If all servers are, check this server's network."
    ),
    "connection_failed": _network("The connection to the receiving server failed."),
    "connection_lost": _network("The connection was closed before the receiving server replied."),
    "reply_timed_out": _network("The receiving server stopped replying."),
    "tls_failed": _network("The required encrypted connection failed, or the certificate is not valid."),
    "protocol_error": _network("The receiving server violated the SMTP protocol."),
    "lost_after_content": _network(
        "The connection was lost before the receiving server confirmed the message. It may have been delivered; "
        "another attempt may deliver it twice."
    ),
    "destination_trouble": _network("The receiving server reports an internal error."),
    "destination_unreachable": _network("The receiving server cannot reach the host behind it."),
    "mail_loop": _network("The message loops between mail servers. The domain's owner has to correct the routing."),
    # This installation, and the sender's configuration.
    "sender_rejected": _ours(
        "The receiving server rejected the envelope sender. Check that its domain exists in DNS and accepts mail."
    ),
    "no_reverse_dns": _ours(
        "This server's IP address has no valid reverse DNS. Add a PTR record whose name resolves back to the address."
    ),
    "hello_rejected": _ours(
        "The receiving server rejected this server's EHLO name. Set delivery.hostname to its name in DNS."
    ),
    "login_required": _ours(
        "The receiving server requires authentication. A server that you have an account with belongs in [[upstreams]]."
    ),
    CONFIGURATION: _ours(
        "A setting of this service is wrong: the login or the certificate of an upstream, a source address, or the "
        "installation key. The mail waits, and goes out when the operator has corrected it. The attempt has the "
        "details.",
        slow_down=True,
    ),
    "command_refused": _ours("The receiving server rejected an SMTP command. Read its reply, and report it."),
    "refused_here": _ours(
        "The message or the address cannot be sent, so delivery was not attempted. The attempt has the details."
    ),
}

# The receiver refuses whoever sends, whatever the message.
BLOCKED: Final = frozenset(name for name, reason in REASONS.items() if reason.fault is Fault.REPUTATION)


def explain(reason: str) -> str:
    """What happened and what to do. Stored attempts may hold names that a later version has dropped."""
    known = REASONS.get(reason)
    return known.explanation if known else "Unrecognized reason. Read the receiving server's reply."
