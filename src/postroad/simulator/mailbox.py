"""The simulator's side of a session: each recipient meets its fate, and what is taken lands in the inbox.

A recipient that is put off is recognised at the next attempt by its sender and itself, because the sender of a
transaction is another one for each message. Once a message was taken its deferrals are forgotten, so a client that uses
one sender for all its mail is put off anew with each.
"""

import asyncio
from collections import OrderedDict
from typing import Final

import msgspec

from postroad.network import smtp_session
from postroad.protocol.smtp import server_commands, values
from postroad.services import inbox
from postroad.simulator import fates

# Long enough to be seen, and shorter than anybody's patience.
SLOW_SECONDS: Final = 3.0
# Far more than a developer's machine has under way; the oldest are forgotten, and so put off once more.
REMEMBERED: Final = 10_000


class Deferrals:
    """How often recipients were put off."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()

    def is_due(self, sender: str, recipient: str) -> bool:
        """Whether the recipient is to be put off now, which then counts."""
        key = (sender, recipient.lower())
        count = self._counts.pop(key, 0)
        is_due = count < fates.DEFERRALS
        self._counts[key] = count + is_due
        if len(self._counts) > self._most:
            self._counts.popitem(last=False)
        return is_due

    def forget(self, sender: str, recipient: str) -> None:
        """The message was taken."""
        self._counts.pop((sender, recipient.lower()), None)


class MailboxPolicy(smtp_session.Policy):
    """One session."""

    def __init__(self, mail: inbox.Inbox, deferrals: Deferrals, *, slow_seconds: float) -> None:
        self._inbox = mail
        self._deferrals = deferrals
        self._slow_seconds = slow_seconds
        self._sender = ""
        self._fates: set[fates.Fate] = set()

    def mail(self, sender: str, parameters: server_commands.Parameters) -> smtp_session.Verdict:
        """Anybody may send."""
        self._sender = sender
        self._fates.clear()
        return super().mail(sender, parameters)

    def recipient(self, address: str, parameters: server_commands.Parameters) -> smtp_session.Verdict:  # noqa: ARG002
        """The recipient's fate, as far as it is decided here."""
        fate = fates.fate_of(address)
        refusal = fates.REFUSALS.get(fate)
        if fate is fates.Fate.DEFER and self._deferrals.is_due(self._sender, address):
            refusal = fates.GREYLISTED
        if refusal is not None:
            return msgspec.structs.replace(refusal, text=f"<{address}>: {refusal.text}")
        self._fates.add(fate)
        return fates.TAKEN

    def data(self) -> smtp_session.Verdict:
        """Ask for the content, or hang up."""
        return None if fates.Fate.DROP in self._fates else super().data()

    def message(self, envelope: values.Envelope) -> smtp_session.Verdict:
        """Put the message into the inbox, at once or late."""
        if fates.Fate.DROP in self._fates:
            return None
        return self._take_late(envelope) if fates.Fate.SLOW in self._fates else self._take(envelope)

    async def _take_late(self, envelope: values.Envelope) -> values.Reply:
        await asyncio.sleep(self._slow_seconds)
        return self._take(envelope)

    def _take(self, envelope: values.Envelope) -> values.Reply:
        received = self._inbox.add(envelope)
        for recipient in envelope.recipients:
            self._deferrals.forget(envelope.sender, recipient)
        return values.Reply(250, f"OK: queued as {received.id}", "2.0.0")
