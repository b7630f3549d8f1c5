"""The client's side of a session: what it says, what it makes of each reply, and that portions make no difference."""

import base64
import itertools
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.smtp import authentication, client, values
from postroad.protocol.smtp.values import Cause, RecipientResult, Reply, Stage

PIPELINING = "PIPELINING"
CONTENT = b"Subject: x\r\n\r\n.y\r\n"
WIRE = b"Subject: x\r\n\r\n..y\r\n.\r\n"
ENVELOPE = values.MailTransaction("a@example.com", ("b@example.org", "c@example.org"), (CONTENT,))
COMMANDS = ["MAIL FROM:<a@example.com>", "RCPT TO:<b@example.org>", "RCPT TO:<c@example.org>", "DATA"]
TEMPORARY, PERMANENT = "451 4.3.0 later", "550 5.7.1 never"


def written(session: client.Client) -> list[str]:
    return b"".join(iter(session.next_bytes, b"")).decode().splitlines()


def ready(*extensions: str) -> client.Client:
    session = client.Client("me.example", starttls=False)
    say(session, "220 hello")
    assert written(session) == ["EHLO me.example"]
    say(session, *(f"250-{line}" for line in ("peer", *extensions)), "250 HELP")
    assert session.step is client.IDLE
    return session


def say(session: client.Client, *lines: str) -> None:
    """Answer; who wants to see what was asked looks at `written` before."""
    written(session)
    session.receive("".join(line + "\r\n" for line in lines).encode())


def reply(line: str) -> Reply:
    code, enhanced, text = line.split(" ", 2)
    return Reply(int(code), text, enhanced)


def test_pipelined_commands_leave_together_and_the_content_follows_the_replies() -> None:
    session = ready(PIPELINING)
    session.begin(ENVELOPE)
    assert written(session) == COMMANDS
    say(session, "250 ok", "250 ok", "250 ok")
    assert written(session) == []
    say(session, "354 go on")
    assert b"".join(iter(session.next_bytes, b"")) == WIRE
    say(session, "250 2.0.0 taken")
    assert session.results() == (RecipientResult(Stage.CONTENT, reply("250 2.0.0 taken")),) * 2
    assert session.step is client.IDLE


def test_without_pipelining_each_command_waits_for_the_reply_before() -> None:
    session = ready()
    session.begin(ENVELOPE)
    for command in COMMANDS:
        assert written(session) == [command]
        say(session, "354 go on" if command == "DATA" else "250 ok")
    assert b"".join(iter(session.next_bytes, b"")) == WIRE
    say(session, "250 2.0.0 taken")
    assert [result.stage for result in session.results()] == [Stage.CONTENT] * 2


@pytest.mark.parametrize("refused", [{}, {"MAIL": TEMPORARY}, {"CONTENT": PERMANENT}])
def test_when_a_transaction_is_over_nothing_of_its_content_is_kept(refused: dict[str, str]) -> None:
    content = b"x" * 100
    session = ready(PIPELINING)
    known = sys.getrefcount(content)
    session.begin(values.MailTransaction("a@example.com", ("b@example.org",), (content,)))
    assert sys.getrefcount(content) > known
    converse(session, refused)
    session.results()
    assert sys.getrefcount(content) == known


@pytest.mark.parametrize("refusal", [TEMPORARY, PERMANENT])
@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "DATA", "CONTENT"])
@pytest.mark.parametrize("extensions", [(), (PIPELINING,)])
def test_a_refusal_is_the_result_of_whom_it_concerns(extensions: tuple[str, ...], verb: str, refusal: str) -> None:
    session = ready(*extensions)
    session.begin(ENVELOPE)
    said = converse(session, {verb: refusal})
    stage = {"MAIL": Stage.MAIL, "RCPT": Stage.RECIPIENT, "DATA": Stage.DATA, "CONTENT": Stage.CONTENT}[verb]
    assert session.results() == (RecipientResult(stage, reply(refusal)),) * 2
    assert session.step is client.IDLE
    # The next transaction is separate from what is left of this one, and only then.
    session.begin(ENVELOPE)
    left_open = verb in {"RCPT", "DATA"} and ("CONTENT" not in said)
    assert written(session)[0] == ("RSET" if left_open else COMMANDS[0])


def converse(session: client.Client, refusals: dict[str, str]) -> list[str]:
    """Answer as a server does that looks at one line at a time; the verbs that it got."""
    said: list[str] = []
    while session.is_waiting:
        data = b"".join(iter(session.next_bytes, b""))
        if said and said[-1] == "DATA" and "DATA" not in refusals:
            assert data.endswith(b".\r\n")
            said.append("CONTENT")
            say(session, refusals.get("CONTENT", "250 2.0.0 ok"))
            continue
        for line in data.decode().splitlines():
            said.append(line[:4])
            good = "354 go on" if line == "DATA" else "250 2.0.0 ok"
            say(session, refusals.get(line, refusals.get(line[:4], good)))
    return said


def test_without_recipients_data_that_was_sent_ahead_is_ended_by_a_dot() -> None:
    session = ready(PIPELINING)
    session.begin(ENVELOPE)
    written(session)
    say(session, "250 ok", PERMANENT, TEMPORARY, "354 go on")
    assert written(session) == ["."]
    assert session.is_waiting
    say(session, "554 5.5.1 no valid recipients")
    assert [result.reply for result in session.results()] == [reply(PERMANENT), reply(TEMPORARY)]
    session.begin(ENVELOPE)
    assert written(session)[0] == COMMANDS[0]


def test_a_refused_sender_is_not_hidden_by_the_replies_that_follow_from_it() -> None:
    session = ready(PIPELINING)
    session.begin(ENVELOPE)
    say(session, TEMPORARY, "503 5.5.1 MAIL first", "503 5.5.1 MAIL first", "503 5.5.1 RCPT first")
    assert session.results() == (RecipientResult(Stage.MAIL, reply(TEMPORARY)),) * 2


@pytest.mark.parametrize("extensions", [(), (PIPELINING,)])
def test_a_refused_recipient_does_not_keep_the_others_from_getting_it(extensions: tuple[str, ...]) -> None:
    session = ready(*extensions)
    session.begin(ENVELOPE)
    converse(session, {COMMANDS[1]: PERMANENT})
    refused, taken = session.results()
    assert refused == RecipientResult(Stage.RECIPIENT, reply(PERMANENT))
    assert taken == RecipientResult(Stage.CONTENT, reply("250 2.0.0 ok"))


@pytest.mark.parametrize("extensions, first", [((), ["RSET"]), ((PIPELINING,), ["RSET", *COMMANDS])])
def test_a_reset_goes_before_the_next_transaction(extensions: tuple[str, ...], first: list[str]) -> None:
    session = ready(*extensions)
    session.begin(ENVELOPE)
    converse(session, {"DATA": TEMPORARY})
    session.begin(ENVELOPE)
    assert written(session) == first
    say(session, "250 2.0.0 ok")
    if not extensions:
        assert written(session) == COMMANDS[:1]
    say(session, TEMPORARY)
    assert session.step is (client.RECIPIENT if extensions else client.IDLE)


def test_a_refused_reset_says_nothing_about_the_message() -> None:
    session = ready(PIPELINING)
    session.begin(ENVELOPE)
    converse(session, {"DATA": TEMPORARY})
    session.begin(ENVELOPE)
    say(session, PERMANENT)
    assert session.step is client.CLOSED
    result = session.results()[0]
    assert (result.stage, result.reply, result.permanent) == (Stage.MAIL, None, False)
    assert "RESET" in result.detail


STEPS = ["250 ok", "250 ok", "250 ok", "354 go on"]
STAGES = [Stage.MAIL, Stage.RECIPIENT, Stage.RECIPIENT, Stage.DATA, Stage.CONTENT]


@pytest.mark.parametrize("replies_before", range(5))
@pytest.mark.parametrize("extensions", [(), (PIPELINING,)])
def test_421_answers_whatever_is_asked_and_ends_the_session(extensions: tuple[str, ...], replies_before: int) -> None:
    session = ready(*extensions)
    session.begin(ENVELOPE)
    for line in STEPS[:replies_before]:
        written(session)
        say(session, line)
    written(session)
    say(session, "421 4.3.2 going down")
    assert session.results() == (RecipientResult(STAGES[replies_before], reply("421 4.3.2 going down")),) * 2
    assert session.step is client.CLOSED
    assert written(session) == []


@pytest.mark.parametrize("replies_before", range(5))
def test_a_loss_is_in_doubt_only_after_the_final_dot(replies_before: int) -> None:
    session = ready(PIPELINING)
    session.begin(ENVELOPE)
    say(session, *STEPS[:replies_before])
    written(session)
    session.fail(Cause.CONNECTION_LOST, "gone")
    stage = STAGES[replies_before]
    assert (
        session.results()
        == (RecipientResult(stage, cause=Cause.CONNECTION_LOST, detail="gone", in_doubt=stage is Stage.CONTENT),) * 2
    )


def test_content_that_was_not_handed_over_to_its_end_is_not_in_doubt() -> None:
    session = ready(PIPELINING)
    session.begin(values.MailTransaction("", ("b@example.org",), (b"x" * 100_000,)))
    session.next_bytes()
    say(session, "250 ok", "250 ok", "354 go on")
    assert len(session.next_bytes()) == 64 * 1024
    session.fail(Cause.CONNECTION_LOST, "gone")
    assert session.results() == (RecipientResult(Stage.CONTENT, cause=Cause.CONNECTION_LOST, detail="gone"),)
    assert session.next_bytes() == b""


@pytest.mark.parametrize("line, is_kept", [("552 5.3.4 too much", True), ("250 2.0.0 thanks", False)])
def test_an_answer_before_the_final_dot_counts_only_as_a_refusal(line: str, is_kept: bool) -> None:  # noqa: FBT001
    session = ready(PIPELINING)
    session.begin(values.MailTransaction("", ("b@example.org",), (b"x" * 100_000,)))
    session.next_bytes()
    say(session, "250 ok", "250 ok", "354 go on")
    session.next_bytes()
    session.receive(f"{line}\r\n".encode())
    (result,) = session.results()
    assert result.reply == (reply(line) if is_kept else None)
    assert not result.in_doubt
    assert session.step is client.CLOSED


@pytest.mark.parametrize(
    "answers, stage",
    [
        (["354 what"], Stage.MAIL),
        (["250 ok", "354 what"], Stage.RECIPIENT),
        (["250 ok", "250 ok", "250 ok", "250 what"], Stage.DATA),
        ([*STEPS, "354 what"], Stage.CONTENT),
        (["hello"], Stage.MAIL),
        ([*STEPS, "250-x\r\n" * 120 + "250 x"], Stage.CONTENT),
    ],
)
def test_nonsense_ends_the_session_without_a_verdict(answers: list[str], stage: Stage) -> None:
    session = ready(PIPELINING)
    session.begin(ENVELOPE)
    for line in answers:
        written(session)
        say(session, line)
    assert session.step is client.CLOSED
    for result in session.results():
        assert (result.stage, result.reply, result.permanent) == (stage, None, False)
        assert result.in_doubt is (stage is Stage.CONTENT)
        assert result.detail


@pytest.mark.parametrize("data", [b"421 4.4.2 idle\r\n", b"250 hello\r\n", b"2", b"nonsense\r\n"])
def test_a_word_that_nobody_asked_for_ends_the_session(data: bytes) -> None:
    session = ready()
    session.receive(data)
    assert session.step is client.CLOSED
    session.begin(ENVELOPE)
    assert [(result.stage, result.in_doubt) for result in session.results()] == [(Stage.MAIL, False)] * 2


def test_a_word_too_many_does_not_take_back_what_was_said() -> None:
    session = ready(PIPELINING)
    session.begin(ENVELOPE)
    say(session, *STEPS)
    written(session)
    say(session, "250 2.0.0 taken", "421 4.3.2 bye")
    assert session.results()[0] == RecipientResult(Stage.CONTENT, reply("250 2.0.0 taken"))
    assert session.step is client.CLOSED


@pytest.mark.parametrize("line", ["250 ok", "550 5.1.1 no"])
def test_an_answer_to_a_command_that_has_not_left_is_none(line: str) -> None:
    session = ready()
    session.begin(ENVELOPE)
    say(session, "250 ok", line)
    assert session.step is client.CLOSED
    for result in session.results():
        assert (result.stage, result.reply) == (Stage.RECIPIENT, None)
        assert "unexpected reply" in result.detail


def test_addresses_that_cannot_be_sent_are_left_out() -> None:
    session = ready(PIPELINING)
    session.begin(values.MailTransaction("", ("b>@example.org", "c@example.org"), (CONTENT,)))
    assert written(session) == ["MAIL FROM:<>", "RCPT TO:<c@example.org>", "DATA"]
    say(session, "250 ok", "250 ok", "354 ok")
    written(session)
    say(session, "250 2.0.0 ok")
    assert [result.permanent for result in session.results()] == [True, False]


@pytest.mark.parametrize(
    "envelope",
    [
        values.MailTransaction("a>@example.com", ("b@example.org",), (CONTENT,)),
        values.MailTransaction("", ("b>@example.org",), (CONTENT,)),
        values.MailTransaction("", ("b@example.org",), (CONTENT,), needs_smtputf8=True),
    ],
)
def test_a_transaction_of_which_nothing_can_be_sent_is_over_at_once(envelope: values.MailTransaction) -> None:
    session = ready(PIPELINING)
    session.begin(envelope)
    assert not session.is_waiting
    assert written(session) == []
    assert session.results()[0].permanent


@pytest.mark.parametrize("extensions, is_fallback", [((PIPELINING, "SMTPUTF8"), False), ((PIPELINING,), True)])
def test_a_server_without_smtputf8_gets_the_fallback(extensions: tuple[str, ...], is_fallback: bool) -> None:  # noqa: FBT001
    fallback = values.MailTransaction("a@example.com", ("b@example.org",), (b"plain\r\n",))
    utf8 = values.MailTransaction(
        "a@example.com", ("b@example.org",), (CONTENT,), needs_smtputf8=True, fallback=fallback
    )
    session = ready(*extensions)
    session.begin(utf8)
    mail, *_ = written(session)
    assert mail == ("MAIL FROM:<a@example.com>" if is_fallback else "MAIL FROM:<a@example.com> SMTPUTF8")
    say(session, "250 ok", "250 ok", "354 ok")
    assert (written(session)[0] == "plain") is is_fallback
    say(session, "250 2.0.0 ok")
    assert [result.permanent for result in session.results()] == [False]


def test_transactions_and_results_have_their_time() -> None:
    session = ready(PIPELINING)
    session.begin(ENVELOPE)
    with pytest.raises(RuntimeError):
        session.results()
    with pytest.raises(RuntimeError):
        session.begin(ENVELOPE)


EVERYTHING = b"250 ok\r\n250-a\r\n250 b\r\n550 5.1.1 no\r\n354 go on\r\n"


@given(cuts=st.lists(st.integers(0, len(EVERYTHING)), max_size=10).map(sorted))
def test_portions_make_no_difference(cuts: list[int]) -> None:
    session = ready(PIPELINING)
    session.begin(ENVELOPE)
    assert written(session) == COMMANDS
    for begin, end in itertools.pairwise([0, *cuts, len(EVERYTHING)]):
        session.receive(EVERYTHING[begin:end])
    assert b"".join(iter(session.next_bytes, b"")) == WIRE
    for octet in b"250-2.0.0 taken\r\n250 2.0.0 gladly\r\n":
        session.receive(bytes([octet]))
    taken, refused = session.results()
    assert taken == RecipientResult(Stage.CONTENT, Reply(250, "taken gladly", "2.0.0"))
    assert refused == RecipientResult(Stage.RECIPIENT, Reply(550, "no", "5.1.1"))


@given(
    data=st.lists(
        st.sampled_from([b"250 ok\r\n", b"354 go\r\n", b"550 no\r\n", b"421 bye\r\n", b"250-", b"\r\n", b"x"])
    )
)
def test_whatever_comes_everybody_has_a_result_in_the_end(data: list[bytes]) -> None:
    session = ready(PIPELINING)
    session.begin(ENVELOPE)
    for portion in data:
        written(session)
        session.receive(portion)
    if session.is_waiting:
        session.fail(Cause.CONNECTION_LOST, "gone")
    assert len(session.results()) == 2


# Commands say what the server's extensions allow, and an address never becomes a second command.


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


# Whatever the content is, the server reads the same lines, one end, and no bare CR or LF.


PIECES = st.lists(st.lists(st.sampled_from([b"a", b".", b"\r", b"\n", b"\r\n", b"\r\n."])).map(b"".join), max_size=4)


def received(wire: bytes) -> bytes:
    """As a server undoes it (RFC 5321 section 4.5.2)."""
    return b"".join(line.removeprefix(b".") for line in wire.splitlines(keepends=True))


@given(pieces=PIECES)
def test_a_server_gets_the_lines_that_were_meant(pieces: list[bytes]) -> None:
    wire = client.transparent(pieces)
    content = b"".join(pieces)
    meant = re.sub(rb"\r\n|\r|\n", b"\r\n", content)
    assert received(wire) == (meant if meant.endswith(b"\r\n") else meant + b"\r\n")


@given(pieces=PIECES)
def test_nothing_in_it_looks_like_its_end(pieces: list[bytes]) -> None:
    wire = b"\r\n" + client.transparent(pieces)
    assert wire.endswith(b"\r\n")
    assert b"\r\n.\r\n" not in wire
    assert re.search(rb"\r(?!\n)|(?<!\r)\n", wire) is None


@pytest.mark.parametrize("content", [b"a: b\r\n\r\nc\r\n", b"x" * 5000 + b"\r\n"])
def test_what_needs_nothing_stays_the_same_object(content: bytes) -> None:
    assert client.transparent((content,)) is content


def test_a_line_end_and_a_dot_in_different_pieces_meet() -> None:
    assert client.transparent((b"a\r", b"\n", b".b\r\n")) == b"a\r\n..b\r\n"


def test_a_smuggled_end_becomes_a_line_with_a_dot() -> None:
    assert client.transparent((b"a\n.\nMAIL FROM:<x>\r.\r",)) == b"a\r\n..\r\nMAIL FROM:<x>\r\n..\r\n"


# The client's login.


ADA = authentication.Credentials("ada", "s3cret pässword")
PLAIN = base64.b64encode("\0ada\0s3cret pässword".encode()).decode()
USERNAME, PASSWORD = (base64.b64encode(text.encode()).decode() for text in ("ada", "s3cret pässword"))


def answer(session: client.Client, *lines: str) -> None:
    session.receive("".join(line + "\r\n" for line in lines).encode())


def greeted(*extensions: str, starttls: bool = False) -> client.Client:
    session = client.Client("me.example", starttls=starttls, credentials=ADA)
    answer(session, "220 hello")
    assert written(session) == ["EHLO me.example"]
    answer(session, *(f"250-{line}" for line in ("peer", *extensions)), "250 HELP")
    return session


@pytest.mark.parametrize("offered", ["AUTH PLAIN", "AUTH LOGIN PLAIN CRAM-MD5", "auth login plain"])
def test_plain_is_preferred_and_needs_one_command(offered: str) -> None:
    session = greeted(offered)
    assert written(session) == [f"AUTH PLAIN {PLAIN}"]
    answer(session, "235 2.7.0 welcome")
    assert (session.step, session.failure) == (client.IDLE, None)


def test_login_answers_two_challenges() -> None:
    session = greeted("AUTH LOGIN")
    assert written(session) == ["AUTH LOGIN"]
    answer(session, "334 VXNlcm5hbWU6")
    assert written(session) == [USERNAME]
    answer(session, "334 UGFzc3dvcmQ6")
    assert written(session) == [PASSWORD]
    answer(session, "235 2.7.0 welcome")
    assert (session.step, session.failure) == (client.IDLE, None)


def test_a_long_response_waits_for_its_challenge() -> None:
    long = authentication.Credentials("ada", "x" * 400)
    command, response = authentication.client_lines(long, "PLAIN")
    assert command == b"AUTH PLAIN"
    assert base64.b64decode(response) == b"\0ada\0" + b"x" * 400


def test_nothing_secret_is_sent_while_starttls_is_wanted() -> None:
    assert written(greeted("AUTH PLAIN", starttls=True)) == []
    session = greeted("AUTH PLAIN", "STARTTLS", starttls=True)
    assert written(session) == ["STARTTLS"]
    answer(session, "220 go on")
    session.secured()
    assert written(session) == ["EHLO me.example"]
    answer(session, "250-peer", "250 AUTH PLAIN")
    assert written(session) == [f"AUTH PLAIN {PLAIN}"]


def test_with_implicit_tls_the_handshake_comes_before_the_banner() -> None:
    session = client.Client("me.example", starttls=False, implicit_tls=True, credentials=ADA)
    assert (session.step, session.is_waiting) == (client.HANDSHAKE, False)
    session.secured()
    assert written(session) == []
    answer(session, "220 hello")
    assert written(session) == ["EHLO me.example"]


@pytest.mark.parametrize(
    "line, cause",
    [
        ("535 5.7.8 wrong", Cause.CONFIGURATION),
        ("534 5.7.9 too weak", Cause.CONFIGURATION),
        ("504 5.5.4 unknown", Cause.CONFIGURATION),
        ("454 4.7.0 not now", None),
    ],
)
def test_a_refused_login_is_ours_unless_it_is_temporary(line: str, cause: Cause | None) -> None:
    session = greeted("AUTH PLAIN")
    written(session)
    answer(session, line)
    code, enhanced, text = line.split(" ", 2)
    assert session.failure == RecipientResult(Stage.AUTH, Reply(int(code), text, enhanced), cause)
    assert session.step is client.CLOSED


@pytest.mark.parametrize("extensions", [(), ("AUTH CRAM-MD5",)])
def test_a_server_without_a_mechanism_for_us_is_a_matter_of_settings(extensions: tuple[str, ...]) -> None:
    session = greeted(*extensions)
    assert written(session) == []
    assert session.failure == RecipientResult(
        Stage.AUTH, cause=Cause.CONFIGURATION, detail="the destination offers neither AUTH PLAIN nor LOGIN"
    )


def test_a_challenge_too_many_ends_the_session() -> None:
    session = greeted("AUTH PLAIN")
    written(session)
    answer(session, "334 more")
    assert session.failure is not None
    assert (session.failure.stage, session.failure.cause) == (Stage.AUTH, Cause.PROTOCOL_ERROR)


def test_a_server_that_quotes_the_command_does_not_reveal_the_password() -> None:
    session = greeted("AUTH PLAIN")
    written(session)
    answer(session, f"500 5.5.1 unknown: AUTH PLAIN {PLAIN}")
    assert session.failure is not None
    assert session.failure.response_text == "5.5.1 unknown: AUTH PLAIN ***"


@pytest.mark.parametrize(
    "line, shown",
    [
        (f"421 4.7.0 closing after {PLAIN}", "4.7.0 closing after ***"),
        (f"500 line too long: AUTH PLAIN {PLAIN[:12]}", "line too long: AUTH PLAIN ***"),
        (f"535 5.7.8 {PLAIN[8:20]}... is wrong", "5.7.8 ***... is wrong"),
        ("535 5.7.8 ada has not the password s3cret pässword", "5.7.8 ada has not the password ***"),
        (f"AUTH PLAIN {PLAIN}", "the destination sent an invalid reply"),
    ],
)
def test_no_reply_to_a_login_reveals_the_password(line: str, shown: str) -> None:
    session = greeted("AUTH PLAIN")
    written(session)
    answer(session, line)
    assert session.failure is not None
    assert (session.failure.stage, session.failure.response_text) == (Stage.AUTH, shown)


def test_a_username_alone_is_no_secret() -> None:
    assert authentication.masked("no user ada", authentication.client_lines(ADA, "LOGIN")) == "no user ada"
