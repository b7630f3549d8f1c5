"""Command lines as a server reads them: the grammar of paths, and the parameters of the extensions it offers."""

import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.smtp import server_commands


@pytest.mark.parametrize(
    "argument, address",
    [
        ("FROM:<>", ""),
        ("FROM:<a@example.org>", "a@example.org"),
        ("from:<a@example.org>", "a@example.org"),
        ("FROM: <a@example.org>", "a@example.org"),
        ("FROM:<A.B+c@Example.ORG>", "A.B+c@Example.ORG"),
        ("FROM:<root@localhost>", "root@localhost"),
        ('FROM:<"a b"@example.org>', '"a b"@example.org'),
        ('FROM:<"a>b"@example.org>', '"a>b"@example.org'),
        ('FROM:<"a\\"b"@example.org>', '"a\\"b"@example.org'),
        ("FROM:<a@[192.0.2.1]>", "a@[192.0.2.1]"),
        ("FROM:<a@[IPv6:2001:db8::1]>", "a@[IPv6:2001:db8::1]"),
        ("FROM:<@relay.test,@other.test:a@example.org>", "a@example.org"),
        ("FROM:<jürgen@bücher.example>", "jürgen@bücher.example"),
        (f"FROM:<{'a' * 64}@example.org>", f"{'a' * 64}@example.org"),
    ],
)
def test_a_sender_is_read_by_the_whole_grammar(argument: str, address: str) -> None:
    assert server_commands.sender(argument) == server_commands.Path(address, {})


@pytest.mark.parametrize(
    "argument, reply",
    [
        ("", (501, "5.5.4")),
        ("a@example.org", (501, "5.5.4")),
        ("FROM:a@example.org", (501, "5.5.4")),
        ("FROM:<a@example.org", (501, "5.5.4")),
        ("FROM:<a@example.org>SIZE=5", (501, "5.5.4")),
        ("FROM:<a@example.org>>", (501, "5.5.4")),
        ("TO:<a@example.org>", (501, "5.5.4")),
        ("FROM:<a>", (553, "5.1.7")),
        ("FROM:<a@>", (553, "5.1.7")),
        ("FROM:<@example.org>", (553, "5.1.7")),
        ("FROM:<a b@example.org>", (553, "5.1.7")),
        ("FROM:<a@b@example.org>", (553, "5.1.7")),
        ("FROM:<.a@example.org>", (553, "5.1.7")),
        ("FROM:<a..b@example.org>", (553, "5.1.7")),
        ("FROM:<a@-example.org>", (553, "5.1.7")),
        ("FROM:<a@example..org>", (553, "5.1.7")),
        ("FROM:<a@example.org.>", (553, "5.1.7")),
        ("FROM:<a\x01@example.org>", (553, "5.1.7")),
        (f"FROM:<{'a' * 65}@example.org>", (553, "5.1.7")),
        (f"FROM:<a@{'b' * 63}.{'b' * 63}.{'b' * 63}.{'b' * 63}.c>", (553, "5.1.7")),
        ("FROM:<> SIZE", (501, "5.5.4")),
        ("FROM:<> SIZE=", (501, "5.5.4")),
        ("FROM:<> SIZE=x", (501, "5.5.4")),
        ("FROM:<> SIZE=1 SIZE=1", (501, "5.5.4")),
        ("FROM:<> BODY=BINARYMIME", (501, "5.5.4")),
        ("FROM:<> SMTPUTF8=yes", (501, "5.5.4")),
        ("FROM:<> =x", (501, "5.5.4")),
        ("FROM:<> NOTIFY=NEVER", (555, "5.5.4")),
        ("FROM:<> FUTURE=1", (555, "5.5.4")),
    ],
)
def test_a_malformed_sender_is_refused_with_the_code_for_it(argument: str, reply: tuple[int, str]) -> None:
    with pytest.raises(server_commands.CommandError) as refused:
        server_commands.sender(argument)
    assert (refused.value.reply.code, refused.value.reply.enhanced) == reply


def test_the_parameters_of_the_extensions_are_read() -> None:
    path = server_commands.sender("FROM:<> size=12 BODY=8bitmime SMTPUTF8 RET=HDRS ENVID=QQ+2B1 AUTH=<>")
    assert path.parameters == {
        "SIZE": "12",
        "BODY": "8bitmime",
        "SMTPUTF8": "",
        "RET": "HDRS",
        "ENVID": "QQ+2B1",
        "AUTH": "<>",
    }
    path = server_commands.recipient("TO:<a@example.org>  NOTIFY=SUCCESS,DELAY ORCPT=rfc822;b+2B@example.org")
    assert path.parameters == {"NOTIFY": "SUCCESS,DELAY", "ORCPT": "rfc822;b+2B@example.org"}


def test_a_recipient_needs_an_address_and_only_postmaster_no_domain() -> None:
    assert server_commands.recipient("TO:<Postmaster>").address == "Postmaster"
    for argument in ("TO:<>", "TO:<webmaster>"):
        with pytest.raises(server_commands.CommandError) as refused:
            server_commands.recipient(argument)
        assert refused.value.reply.enhanced == "5.1.3"
    with pytest.raises(server_commands.CommandError) as refused:
        server_commands.recipient("TO:<a@example.org> NOTIFY=NEVER,DELAY")
    assert refused.value.reply.code == 501


def test_a_verb_is_found_in_whatever_case() -> None:
    assert server_commands.split(b"mail FROM:<a@b.c> ") == ("MAIL", "FROM:<a@b.c>")
    assert server_commands.split(b"QUIT") == ("QUIT", "")


@hypothesis.given(strategies.text(max_size=100))
def test_any_text_is_read_or_refused_and_what_is_read_is_one_word_of_an_address(text: str) -> None:
    try:
        path = server_commands.recipient(f"TO:<{text}>")
    except server_commands.CommandError:
        return
    assert not any(character in path.address for character in "\r\n\0")
    assert "@" in path.address or path.address.lower() == "postmaster"
