"""Every reply of our servers carries an enhanced status code, except those that RFC 2034 section 4 exempts.

Exempt are the banner, replies to EHLO and HELO, and 3xx. The texts are read from the source, so a new reply without a
scenario, or without a code, fails here.
"""

import ast
import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad import errors
from postroad import protocol as protocol_package
from postroad.protocol.smtp import server_events, server_input, values
from postroad.submission import session
from tests.protocol.smtp.server_driver import FEATURES, Driver, agree

SOURCE = Path(protocol_package.__file__).parents[1]
SMTP_SERVER = [*sorted((SOURCE / "protocol/smtp").glob("server*.py")), SOURCE / "protocol/smtp/authentication.py"]
POLICIES = [
    SOURCE / "network" / "smtp" / "smtp_server.py",
    *sorted((SOURCE / "submission").glob("*.py")),
    *sorted((SOURCE / "inbound").glob("*.py")),
    *sorted((SOURCE / "simulator").glob("*.py")),
]
# The banner, the reply to EHLO, and 354.
EXEMPT = {"{} ESMTP", "Hello {}", "Start mail input; end with <CRLF>.<CRLF>"}
CODED_LINE = re.compile(r"(?:2\d\d[ -]2|4\d\d[ -]4|5\d\d[ -]5)\.\d{1,3}\.\d{1,3} \S.*")  # RFC 2034 section 4

AUTH = server_events.Features("mx.example.test", 1000, starttls=True, auth=True, bad_logins=2)
OPEN_AUTH = server_events.Features("mx.example.test", 1000, recipients=1, auth=True, auth_without_tls=True)
MAIL = b"MAIL FROM:<a@example.org>\r\n"
RCPT = b"RCPT TO:<b@example.net>\r\n"
PLAIN = base64.b64encode(b"\0user\0password") + b"\r\n"

SCENARIOS = [
    (FEATURES, b"NOOP\r\nHELP\r\nRSET\r\nVRFY x\r\nEXPN x\r\nETRN x\r\nWHAT\r\nQUIT\r\n"),
    (FEATURES, MAIL + b"EHLO\r\n\xff\r\nNO\xc3\xa4P\r\nNOOP \0\r\nNOOP\n" + b"x" * 3000 + b"\r\n"),
    (FEATURES, b"HELO x\r\nMAIL FROM:<a@example.org> BODY=7BIT\r\n" + RCPT + b"AUTH PLAIN\r\nSTARTTLS\r\n"),
    (FEATURES, b"EHLO x\r\nMAIL a\r\nMAIL FROM:<a>\r\nMAIL FROM:<" + b"a" * 300 + b"@example.org>\r\n"),
    (FEATURES, "EHLO x\r\nMAIL FROM:<ä@example.org>\r\nMAIL FROM:<> SIZE=1001\r\nRSET x\r\n".encode()),
    (
        FEATURES,
        b"EHLO x\r\n" + b"".join(b"MAIL FROM:<> %b\r\n" % word for word in (b"==", b"X", b"RET RET", b"SIZE=x")),
    ),
    (
        FEATURES,
        b"EHLO x\r\nMAIL FROM:<> BODY=7BIT BODY=7BIT\r\n" + MAIL + b"DATA\r\n" + RCPT + RCPT + b"DATA\r\nx\r\n.\r\n",
    ),
    (FEATURES, b"EHLO x\r\n" + MAIL + RCPT + b"DATA\r\na\rb\r\n.\r\n" + MAIL + RCPT + b"BDAT 1\r\nxBDAT 0 LAST\r\n"),
    (FEATURES, b"EHLO x\r\n" + MAIL + RCPT + b"BDAT x\r\n"),
    (FEATURES, b"GET / HTTP/1.1\r\n"),
    (FEATURES, b"NOOP\r\n" * 101),
    (FEATURES, b"WHAT\r\n" * 21),
    (AUTH, b"EHLO x\r\nAUTH PLAIN\r\nSTARTTLS\r\n"),
    (AUTH, b"EHLO x\r\nSTARTTLS\r\nNOOP\r\n"),
    (
        OPEN_AUTH,
        b"EHLO x\r\nAUTH GSSAPI\r\nAUTH LOGIN\r\n*\r\nAUTH PLAIN ?\r\nAUTH PLAIN eA==\r\nAUTH PLAIN YQBiAGM=\r\n",
    ),
    (
        OPEN_AUTH,
        b"EHLO x\r\nAUTH PLAIN " + PLAIN + b"AUTH PLAIN " + PLAIN + MAIL + RCPT + b"RCPT TO:<c@example.net>\r\n",
    ),
]


class Full(server_input.MemoryStore):
    """A store without room."""

    def write(self, part: bytes) -> bool:
        return False


def refuse_logins(event: server_events.Event) -> values.Reply:
    if isinstance(event, server_events.Authenticate):
        return values.Reply(535, "Authentication credentials invalid", "5.7.8")
    return agree(event)


def literal_replies(file: Path) -> Iterator[tuple[str, str, str]]:
    """Code, enhanced code and text of each reply in a file; `{}` is a value, and an empty code is a variable."""
    for call in ast.walk(ast.parse(file.read_text())):
        if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] not in {"Reply", "CommandError"}:
            continue
        order = (0, 1, 2) if ast.unparse(call.func).endswith("CommandError") else (0, 2, 1)
        code, enhanced, text = (_text(call.args[at]) if at < len(call.args) else "" for at in order)
        if text:
            yield code, enhanced, text


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def wire_lines() -> list[str]:
    """What the server says in all scenarios, without the replies to EHLO and HELO and without 3xx."""
    said: list[str] = []
    for features, data in SCENARIOS:
        said += Driver(features).send(data)
    said += Driver(AUTH, decide=refuse_logins, is_secure=True).send(b"EHLO x\r\n" + (b"AUTH PLAIN " + PLAIN) * 2)
    large = b"x" * server_input.IN_MEMORY_OCTETS + b"\r\n"
    features = server_events.Features("mx.example.test", 10**6)
    sent = Driver(features, open_store=Full)
    said += sent.send(b"EHLO x\r\n" + MAIL + RCPT + b"DATA\r\n") + sent.send(large) + sent.send(b".\r\n")
    return list(_without_exempt(said))


def _without_exempt(said: list[str]) -> Iterator[str]:
    in_hello = False
    for line in said:
        in_hello = in_hello or line[4:] == f"{FEATURES.name} hello"
        if not in_hello and not line.startswith("3"):
            yield line
        if line[3] == " ":
            in_hello = False


def test_every_reply_of_the_protocol_is_sent_with_an_enhanced_code() -> None:
    lines = wire_lines()
    assert [line for line in lines if not CODED_LINE.fullmatch(line)] == []
    unseen = []
    for file in SMTP_SERVER:
        for code, _enhanced, text in literal_replies(file):
            pattern = ".*".join(re.escape(part) for part in text.split("{}"))
            if not any(re.fullmatch(rf"{code or '...'}[ -]\S+ {pattern}", line) for line in lines):
                unseen.append((file.name, text))
    assert unseen == []


def test_every_reply_of_a_policy_has_an_enhanced_code_of_its_class() -> None:
    found = [reply for file in POLICIES for reply in literal_replies(file)]
    assert {text for _, enhanced, text in found if not enhanced} == EXEMPT | {"{}: {}{} ({})"}
    for code, enhanced, text in found:
        if code and text not in EXEMPT:
            assert CODED_LINE.fullmatch(f"{code} {enhanced} {text}"), text


@pytest.mark.parametrize("error", errors.PostroadError.__subclasses__(), ids=lambda error: error.__name__)
def test_every_error_has_an_enhanced_code_of_its_class(error: type[errors.PostroadError]) -> None:
    for kind in (error, *error.__subclasses__()):
        assert CODED_LINE.fullmatch(f"{kind.smtp_reply} text")


def test_the_codes_that_replace_those_of_an_error_are_enhanced_too() -> None:
    for codes in (session.AUTH_REQUIRED, session.BAD_RECIPIENT):
        assert CODED_LINE.fullmatch(f"{codes} text")
