"""Our client and our server, joined in memory: what goes in comes out, wherever the bytes are cut."""

import itertools
from collections.abc import Callable

import hypothesis
from hypothesis import strategies

from postroad.protocol.smtp import client, server_events, values
from tests.protocol.smtp.server_driver import POSITIVE, Driver, agree

Cut = Callable[[bytes], list[bytes]]
FEATURES = server_events.Features("mx.example.test", 100_000)
LINES = strategies.lists(
    strategies.sampled_from([b"", b".", b"..", b".x", b"Subject: x", b"x" * 70_000, b"\xc3\xbc\xff", b"QUIT", b"\0"])
    | strategies.binary(max_size=30).map(lambda line: line.replace(b"\r", b"").replace(b"\n", b"")),
    max_size=6,
)
ADDRESSES = strategies.sampled_from(
    ["a@example.org", "first.last+tag@mail.example.org", '"odd <one>"@example.org', "o'hara@example.org"]
)


def pump(sender: client.Client, driver: Driver, cut: Cut) -> None:
    """Carry the bytes to and fro until neither side has any."""
    while outgoing := b"".join(iter(sender.next_bytes, b"")):
        for piece in cut(outgoing):
            said = driver.send(piece)
            for answer in cut("".join(f"{line}\r\n" for line in said).encode()):
                sender.receive(answer)


def meet(driver: Driver, cut: Cut, *, is_pipelined: bool) -> client.Client:
    """A client that was greeted."""
    sender = client.Client("client.test", starttls=False)
    sender.receive(b"220 mx.example.test ESMTP\r\n")
    pump(sender, driver, cut)
    if not is_pipelined:
        del sender.extensions["PIPELINING"]
    return sender


@hypothesis.given(
    data=strategies.data(),
    messages=strategies.lists(LINES, min_size=1, max_size=3),
    recipients=strategies.lists(ADDRESSES, min_size=1, max_size=4, unique=True),
    is_pipelined=strategies.booleans(),
)
def test_client_and_server_agree_on_every_envelope_and_content(
    data: strategies.DataObject, messages: list[list[bytes]], recipients: list[str], *, is_pipelined: bool
) -> None:
    def cut(whole: bytes) -> list[bytes]:
        places = data.draw(strategies.lists(strategies.integers(0, len(whole)), max_size=5))
        edges = [0, *sorted(places), len(whole)]
        return [whole[begin:end] for begin, end in itertools.pairwise(edges)]

    driver = Driver(FEATURES)
    sender = meet(driver, cut, is_pipelined=is_pipelined)
    sent = []
    for lines in messages:
        content = b"".join(line + b"\r\n" for line in lines)
        sent.append(
            values.MailTransaction("a@example.com", tuple(recipients), (content,), is_8bit=not content.isascii())
        )
        sender.begin(sent[-1])
        pump(sender, driver, cut)
        taken = values.RecipientResult(values.Stage.CONTENT, POSITIVE[server_events.Message])
        too_large = sent[-1].size > FEATURES.message_octets
        if too_large:
            sent.pop()
        assert all((result == taken) is not too_large for result in sender.results())
    assert [whole(transaction) for transaction in driver.messages] == [whole(transaction) for transaction in sent]


def whole(transaction: values.MailTransaction) -> values.MailTransaction:
    """An empty content becomes an empty line on its way, because the end of DATA needs a line end before it."""
    content = b"".join(transaction.content) or b"\r\n"
    return values.MailTransaction(transaction.sender, transaction.recipients, (content,), is_8bit=transaction.is_8bit)


def test_a_refused_recipient_is_refused_on_both_sides_and_the_others_are_served() -> None:
    def decide(event: server_events.Event) -> values.Reply:
        if isinstance(event, server_events.Recipient) and event.path.address.startswith("no"):
            return values.Reply(550, "unknown", "5.1.1")
        return agree(event)

    for is_pipelined in (True, False):
        driver = Driver(FEATURES, decide=decide)
        sender = meet(driver, lambda data: [data], is_pipelined=is_pipelined)
        sender.begin(values.MailTransaction("", ("no@example.org", "b@example.org"), (b"x\r\n",)))
        pump(sender, driver, lambda data: [data])
        refused, taken = sender.results()
        assert refused == values.RecipientResult(values.Stage.RECIPIENT, values.Reply(550, "unknown", "5.1.1"))
        assert taken.stage is values.Stage.CONTENT
        assert driver.messages == [values.MailTransaction("", ("b@example.org",), (b"x\r\n",))]
