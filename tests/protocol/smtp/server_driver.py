"""A driver for the server's side of a session, in memory: bytes in, replies out, and what the policy was asked."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from postroad.protocol.smtp import server, server_events, server_input, values

FEATURES = server_events.Features("mx.example.test", 1000)
POSITIVE = {
    server_events.Hello: values.Reply(250, "hello"),
    server_events.Authenticate: values.Reply(235, "welcome", "2.7.0"),
    server_events.Mail: values.Reply(250, "sender", "2.1.0"),
    server_events.Recipient: values.Reply(250, "recipient", "2.1.5"),
    server_events.Data: values.Reply(354, "go on"),
    server_events.Message: values.Reply(250, "taken", "2.0.0"),
}

Decide = Callable[[server_events.Event], values.Reply]


def agree(event: server_events.Event) -> values.Reply:
    """Take everything that can be taken."""
    if isinstance(event, server_events.Rejected):
        return event.reply
    return POSITIVE[type(event)]


@dataclass(slots=True)
class Driver:
    """A session that is past its banner. TLS is agreed on, and in place at once."""

    features: server_events.Features = FEATURES
    decide: Decide = agree
    is_secure: bool = False
    open_store: server_input.OpenStore = server_input.MemoryStore
    events: list[server_events.Event] = field(default_factory=list)
    machine: server.Server = field(init=False)

    def __post_init__(self) -> None:
        self.machine = server.Server(
            self.features, server_events.Session("192.0.2.1", is_secure=self.is_secure), self.open_store
        )
        self.machine.greet(values.Reply(220, f"{self.features.name} ESMTP"))
        self.machine.take_output()

    def send(self, data: bytes) -> list[str]:
        """The lines that the server says to these bytes."""
        self.machine.receive(data)
        while (event := self.machine.next_event()) is not None:
            self.events.append(event)
            if isinstance(event, server_events.LargeContent):
                event = self.machine.load_content()
                assert event is not None
                self.events.append(event)
            if isinstance(event, server_events.StartTls):
                self.machine.secured()
            else:
                self.machine.reply(self.decide(event))
        return self.machine.take_output().decode("ascii").splitlines()

    def say(self, *lines: str) -> list[str]:
        """The same for command lines, sent together."""
        return self.send("".join(f"{line}\r\n" for line in lines).encode())

    def codes(self, *lines: str) -> list[str]:
        """The codes of the replies to command lines; those of the lines before the last of a reply are left out."""
        return codes(self.say(*lines))

    @property
    def messages(self) -> list[values.MailTransaction]:
        """What was taken."""
        return [event.transaction for event in self.events if isinstance(event, server_events.Message)]


def codes(lines: Iterable[str]) -> list[str]:
    """Codes, with the enhanced ones."""
    found = []
    for line in lines:
        code, mark, text = line[:3], line[3], line[4:]
        if mark == " ":
            first, _, _ = text.partition(" ")
            found.append(f"{code} {first}" if first[:1].isdigit() and first.count(".") == 2 else code)
    return found


def ready(driver: Driver | None = None, *, recipients: int = 1) -> Driver:
    """A session with a sender and recipients."""
    driver = driver or Driver()
    driver.say("EHLO client.test", "MAIL FROM:<a@example.org>")
    driver.say(*(f"RCPT TO:<r{number}@example.net>" for number in range(recipients)))
    return driver
