"""One transaction as a server collects it: a sender, recipients, and what has come of a content in chunks."""

from typing import Final

from postroad.protocol.smtp import server_commands, server_reading, values

_NOBODY: Final = server_commands.Path("", {})


class TransactionBuilder:
    """What is known between MAIL and the end of the content; nothing yet in a new one."""

    __slots__ = ("_recipients", "chunks", "sender")

    def __init__(self) -> None:
        self.sender = _NOBODY
        # By their text in small letters: who is named twice, in whatever letters, gets one message.
        self._recipients: dict[str, str] = {}
        # Chunks that come without a transaction are thrown away.
        self.chunks = server_reading.Chunks(0)

    @property
    def is_utf8(self) -> bool:
        """Whether addresses may be in other scripts (RFC 6531)."""
        return "SMTPUTF8" in self.sender.parameters

    def has_room(self, recipient: str, limit: int) -> bool:
        """Whether there are fewer recipients than that, or this is one of them."""
        return len(self._recipients) < limit or recipient.lower() in self._recipients

    def add(self, recipient: str) -> None:
        """One more recipient, or the same again."""
        self._recipients.setdefault(recipient.lower(), recipient)

    def build(self, content: bytes) -> values.MailTransaction:
        """The whole of it."""
        return values.MailTransaction(
            sender=self.sender.address,
            recipients=tuple(self._recipients.values()),
            content=(content,),
            is_8bit=self.sender.parameters.get("BODY", "").upper() == "8BITMIME",
            needs_smtputf8=self.is_utf8,
        )
