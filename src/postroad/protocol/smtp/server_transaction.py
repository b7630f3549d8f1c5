"""A mail transaction under construction on the server side: sender, recipients, and the BDAT chunks so far."""

from typing import Final

from postroad.protocol.smtp import server_commands, server_input, values

_NO_SENDER: Final = server_commands.Path("", {})


class TransactionBuilder:
    """The state between MAIL and the end of the content."""

    __slots__ = ("_recipients", "chunks", "sender")

    def __init__(self) -> None:
        self.sender = _NO_SENDER
        # Keyed by the lower-case address: a recipient named twice gets one message.
        self._recipients: dict[str, str] = {}
        # Discards chunks sent outside a transaction.
        self.chunks = server_input.Chunks(0)

    @property
    def is_utf8(self) -> bool:
        """Whether addresses may be non-ASCII (RFC 6531)."""
        return "SMTPUTF8" in self.sender.parameters

    def has_room(self, recipient: str, limit: int) -> bool:
        """Whether the recipient fits the limit, or is already included."""
        return len(self._recipients) < limit or recipient.lower() in self._recipients

    def add(self, recipient: str) -> None:
        """Add a recipient; a duplicate changes nothing."""
        self._recipients.setdefault(recipient.lower(), recipient)

    def build(self, content: bytes) -> values.MailTransaction:
        """The complete transaction."""
        return values.MailTransaction(
            sender=self.sender.address,
            recipients=tuple(self._recipients.values()),
            content=(content,),
            is_8bit=self.sender.parameters.get("BODY", "").upper() == "8BITMIME",
            needs_smtputf8=self.is_utf8,
        )
