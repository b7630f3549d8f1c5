"""The policy of an SMTP session: what a listener decides, a method for each verb.

A decision is a reply, `None` to close the connection, or an awaitable of either.
"""

import abc
from collections.abc import Awaitable

from postroad.protocol.smtp import server_commands, server_events, values

ReplyOrClose = values.Reply | None
PolicyDecision = ReplyOrClose | Awaitable[ReplyOrClose]


class SessionPolicy(abc.ABC):
    """The decisions of one session, a method for each verb. The defaults accept everything but credentials."""

    # Whether a decision only waits, to slow a flood down.
    is_delayed = False

    @property
    def account_id(self) -> str | None:
        """The account that the session has authenticated for: its messages share room. Others count by network."""
        return None

    def hello(self, name: str) -> PolicyDecision:
        """EHLO or HELO."""
        return values.Reply(250, f"Hello {name}")

    def authenticate(self, username: str, password: str) -> PolicyDecision:  # noqa: ARG002 - used by overrides
        """AUTH; 235 authenticates the client."""
        return values.Reply(535, "Authentication credentials invalid", "5.7.8")

    def mail(self, sender: str, parameters: server_commands.Parameters) -> PolicyDecision:  # noqa: ARG002
        """MAIL: a transaction begins."""
        return values.Reply(250, "Sender OK", "2.1.0")

    def recipient(self, address: str, parameters: server_commands.Parameters) -> PolicyDecision:  # noqa: ARG002
        """RCPT."""
        return values.Reply(250, "Recipient OK", "2.1.5")

    def data(self) -> PolicyDecision:
        """DATA, before the content; 354 asks for it. Not called for BDAT."""
        return values.Reply(354, "Start mail input; end with <CRLF>.<CRLF>")

    def refused(self, verb: str, reply: values.Reply) -> PolicyDecision:  # noqa: ARG002
        """An address, a recipient over the limit, a size or a content is refused; `reply` says why."""
        return reply

    def closed(self) -> None:  # noqa: B027 - used by overrides
        """The connection is closed; a complete message may still be on its way to the store."""

    @abc.abstractmethod
    def message(self, transaction: values.MailTransaction) -> PolicyDecision:
        """The message is complete; 250 takes responsibility for it."""


def dispatch(policy: SessionPolicy, event: server_events.Event) -> PolicyDecision:
    """The policy's decision on an event."""
    # Ordered by frequency; a match statement on classes costs several times as much.
    if isinstance(event, server_events.Recipient):
        return policy.recipient(event.path.address, event.path.parameters)
    if isinstance(event, server_events.Mail):
        return policy.mail(event.path.address, event.path.parameters)
    if isinstance(event, server_events.Data):
        return policy.data()
    if isinstance(event, server_events.Message):
        return policy.message(event.transaction)
    if isinstance(event, server_events.Rejected):
        return policy.refused(event.verb, event.reply)
    if isinstance(event, server_events.Hello):
        return policy.hello(event.name)
    if isinstance(event, server_events.Authenticate):
        return policy.authenticate(event.credentials.username, event.credentials.password)
    raise RuntimeError("a policy does not decide on TLS")
