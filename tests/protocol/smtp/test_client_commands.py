"""Commands say what the server's extensions allow, and an address never becomes a second command."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.smtp import client, values

ALL = {"SIZE": "1000", "8BITMIME": "", "SMTPUTF8": ""}


def transaction(
    sender: str = "a@example.com", *, size: int = 10, is_8bit: bool = False, needs_smtputf8: bool = False
) -> values.MailTransaction:
    content = (b"x" * size,)
    return values.MailTransaction(sender, ("b@example.org",), content, is_8bit=is_8bit, needs_smtputf8=needs_smtputf8)


@pytest.mark.parametrize(
    "sent, extensions, command",
    [
        (transaction(), {}, b"MAIL FROM:<a@example.com>\r\n"),
        (transaction(""), {}, b"MAIL FROM:<>\r\n"),
        (transaction(), ALL, b"MAIL FROM:<a@example.com> SIZE=10\r\n"),
        (transaction(size=1000), ALL, b"MAIL FROM:<a@example.com> SIZE=1000\r\n"),
        (transaction(size=1001), {"SIZE": "0"}, b"MAIL FROM:<a@example.com> SIZE=1001\r\n"),
        (transaction(size=1001), {"SIZE": ""}, b"MAIL FROM:<a@example.com> SIZE=1001\r\n"),
        (transaction(size=1001), {"SIZE": "large"}, b"MAIL FROM:<a@example.com> SIZE=1001\r\n"),
        (transaction(is_8bit=True), {"8BITMIME": ""}, b"MAIL FROM:<a@example.com> BODY=8BITMIME\r\n"),
        (transaction("é@b.test", needs_smtputf8=True), {"SMTPUTF8": ""}, "MAIL FROM:<é@b.test> SMTPUTF8\r\n".encode()),
        (transaction("", is_8bit=True, needs_smtputf8=True), ALL, b"MAIL FROM:<> SIZE=10 BODY=8BITMIME SMTPUTF8\r\n"),
    ],
)  # fmt: skip
def test_mail_has_the_parameters_that_are_offered_and_needed(
    sent: values.MailTransaction, extensions: dict[str, str], command: bytes
) -> None:
    assert client.mail_command(sent, extensions) == command


@pytest.mark.parametrize(
    "sent, extensions, word",
    [
        (transaction(size=1001), ALL, "at most 1000 octets"),
        (transaction(needs_smtputf8=True), {"8BITMIME": ""}, "SMTPUTF8"),
        (transaction(is_8bit=True), {"SIZE": "1000", "SMTPUTF8": ""}, "8BITMIME"),
        (transaction("é@example.com"), ALL, "sender's address"),
        (transaction("a@example.com> SIZE=1\r\nRCPT TO:<b"), ALL, "sender's address"),
    ],
)
def test_what_the_server_cannot_take_is_refused_for_good(
    sent: values.MailTransaction, extensions: dict[str, str], word: str
) -> None:
    result = client.mail_command(sent, extensions)
    assert isinstance(result, values.RecipientResult)
    assert result.stage is values.Stage.MAIL
    assert result.permanent
    assert word in result.detail


@pytest.mark.parametrize(
    "address",
    ["a@example.com", "a+b@[192.0.2.1]", '"a b"@example.com', '"a<>b"@example.com', r'"a\"b"@example.com', "a@b@c"],
)
def test_addresses_are_sent_as_they_are(address: str) -> None:
    assert client.recipient_command(address, is_utf8=False) == f"RCPT TO:<{address}>\r\n".encode()


@pytest.mark.parametrize(
    "address",
    [
        "", "a", "@", "a@", "@b", "a b@example.com", "a@exa mple.com", "a@b>", "<a@b>", "a@b\r\nDATA", "a\n@b", "a@b\r",
        "a\0@b", "a@b\x7f", "a\t@b", '"a@b', '"a\r\nb"@c', '"a\\\nb"@c', '"a"b"@c', 'a"b@c',
        "é@b", "a@é", "a@" + "b" * 320,
    ],
)  # fmt: skip
def test_an_address_that_could_do_harm_is_refused_for_good(address: str) -> None:
    result = client.recipient_command(address, is_utf8=False)
    assert isinstance(result, values.RecipientResult)
    assert (result.stage, result.permanent) == (values.Stage.RECIPIENT, True)
    assert result.detail


def test_half_a_surrogate_pair_is_refused() -> None:
    assert isinstance(client.recipient_command("a\ud800@example.com", is_utf8=True), values.RecipientResult)


@given(address=st.text(st.sampled_from('a@<>" \\\r\n\0.é'), max_size=12), is_utf8=st.booleans())
def test_a_command_is_always_one_line(address: str, is_utf8: bool) -> None:  # noqa: FBT001 - hypothesis names it
    command = client.recipient_command(address, is_utf8=is_utf8)
    if isinstance(command, bytes):
        assert command.endswith(b">\r\n")
        assert not {*command[:-2]} & {0, 10, 13}
