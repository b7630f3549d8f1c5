"""A mail transaction under construction on the server side: sender, recipients, and the BDAT chunks so far."""

from typing import Final

from postroad.protocol.smtp import server_commands, server_content, server_input, server_replies, values

_NO_SENDER: Final = server_commands.Path("", {})


class TransactionBuilder:
    """The state between MAIL and the end of the content."""

    __slots__ = ("_chunks", "_limit", "_open_store", "_reader", "_recipients", "sender")

    def __init__(self, limit: int, open_store: server_content.OpenStore) -> None:
        """`limit` is that of the content, in octets."""
        self._limit = limit
        self._open_store = open_store
        self.sender = _NO_SENDER
        # Keyed by the lower-case address: a recipient named twice gets one message.
        self._recipients: dict[str, str] = {}
        # Discards chunks sent outside a transaction.
        self._chunks = server_input.Chunks(0, open_store)
        # Of the content, once it begins.
        self._reader: server_input.Reader = self._chunks

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

    def begin_data(self) -> server_input.Reader:
        """The content of DATA begins."""
        self._reader = server_input.DotStuffed(self._limit, self._open_store)
        return self._reader

    def begin_chunk(self, size: int, *, is_last: bool, is_first: bool) -> server_input.Reader:
        """A chunk of this size begins."""
        if is_first:
            self._reader = self._chunks = server_input.Chunks(self._limit, self._open_store)
        self._chunks.begin(size, is_last=is_last)
        return self._chunks

    @property
    def is_large(self) -> bool:
        """Whether the complete content is in a store."""
        reader = self._reader
        return bool(reader.stored.octets) and not (reader.is_too_large or reader.stored.is_incomplete)

    def result(self) -> values.MailTransaction | values.Reply:
        """The complete transaction, or the refusal of its content."""
        content = self._reader.content()
        if self._reader.is_too_large:
            return server_replies.too_large(self._limit)
        if self._reader.stored.is_incomplete:
            return server_replies.NO_ROOM
        return server_replies.BARE_CR if content is None else self._build(content)

    def discard(self) -> "TransactionBuilder":
        """The transaction has ended: keep no content. The builder of the next one."""
        self._reader.stored.discard()
        return TransactionBuilder(self._limit, self._open_store)

    def _build(self, content: bytes) -> values.MailTransaction:
        return values.MailTransaction(
            sender=self.sender.address,
            recipients=tuple(self._recipients.values()),
            content=(content,),
            is_8bit=self.sender.parameters.get("BODY", "").upper() == "8BITMIME",
            needs_smtputf8=self.is_utf8,
        )
