"""The rules of a send, field by field: what passes comes out trusted, what does not is refused by its name."""

import string
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad import errors
from postroad.mail.accept import validation
from postroad.model.mail import send_request

GOOD = send_request.SendRequest(sender="shop@example.com", to=("ada@example.org",), subject="Hello", text="Hi")
# What would begin a header of the caller's choice, or be taken for a line break by some reader.
LINE_BREAKS = ["\r\nBcc: eve@example.net", "\n", "\r", "\0", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]
ENCODED_WORD = "=?utf-8?q?=0D=0ABcc:_eve?="


def check(**changes: Any) -> validation.CheckedSend:
    return validation.check(msgspec.structs.replace(GOOD, **changes))


def refusal(**changes: Any) -> str:
    with pytest.raises(errors.InvalidRequest) as refused:
        check(**changes)
    return refused.value.message


def people(count: int, start: int = 0) -> tuple[str, ...]:
    return tuple(f"person{number}@example.org" for number in range(start, start + count))


def test_what_is_not_given_is_empty() -> None:
    given = check()
    assert (given.cc, given.bcc, given.tags, given.attachments) == ((), (), (), ())
    assert (given.headers, given.variables) == ({}, {})


@pytest.mark.parametrize("field", ["to", "cc", "bcc", "tags"])
def test_a_single_string_is_the_same_as_a_list_of_one(field: str) -> None:
    assert check(**{field: "ada@example.org"}) == check(**{field: ("ada@example.org",)})


# Addresses


def test_addresses_are_parsed_and_keep_how_they_were_written() -> None:
    checked = check(sender="Shop <Shop@EXAMPLE.com>", reply_to="help@example.com")
    assert (checked.sender.address, checked.sender.display_name) == ("Shop@example.com", "Shop")
    assert checked.sender.written == "Shop <Shop@EXAMPLE.com>"
    assert [mailbox.written for mailbox in checked.reply_to] == ["help@example.com"]


@pytest.mark.parametrize("field", ["sender", "reply_to"])
@pytest.mark.parametrize("bad", ["", "bob", "bob@", "a@example.org, b@example.org", "a@example.org\r\nX: y"])
def test_a_lone_address_is_refused_by_the_name_of_its_field(field: str, bad: str) -> None:
    message = refusal(**{field: bad})
    assert message.startswith("from: " if field == "sender" else "reply_to: ")
    assert "is not an email address" in message


def test_replies_go_to_one_address_or_to_several() -> None:
    assert check().reply_to == ()
    assert [mailbox.written for mailbox in check(reply_to=people(10)).reply_to] == list(people(10))
    assert refusal(reply_to=people(11)) == "reply_to: 11 addresses; at most 10 are allowed"
    assert refusal(reply_to=(*people(2), "bob@")).startswith("reply_to[2]: 'bob@' is not an email address")
    # A list of one is that address.
    assert check(reply_to=("Help <help@example.com>",)) == check(reply_to="Help <help@example.com>")
    assert refusal(reply_to=("bob@",)) == refusal(reply_to="bob@")


@pytest.mark.parametrize("field", ["to", "cc", "bcc"])
def test_an_address_in_a_list_is_refused_by_its_place(field: str) -> None:
    assert refusal(**{field: (*people(3), "bob@")}).startswith(f"{field}[3]: 'bob@' is not an email address")
    assert refusal(**{field: ("bob@",)}).startswith(f"{field}: 'bob@' is not an email address")


@pytest.mark.parametrize("field", ["sender", "to", "cc", "bcc", "reply_to"])
@pytest.mark.parametrize("evil", [*LINE_BREAKS, ENCODED_WORD, "\udcff"])
def test_no_address_carries_a_line_break_or_an_encoded_word(field: str, evil: str) -> None:
    for text in (f"a{evil}@example.org", f"Ada{evil} <a@example.org>", f'"Ada{evil}" <a@example.org>'):
        refusal(**{field: text if field in {"sender", "reply_to"} else (text,)})


def test_somebody_has_to_get_it() -> None:
    assert refusal(to=()) == "to: at least one address is required"
    assert refusal(to=(), cc=people(1)) == "to: at least one address is required"


def test_an_address_counts_once_however_often_and_wherever_it_stands() -> None:
    checked = check(
        to=("Ada@Example.org", "bob@example.org"),
        cc=("ada@example.org", "eve@bücher.example"),
        bcc=("BOB@EXAMPLE.ORG", "Eve <eve@xn--bcher-kva.example>", "zoe@example.org"),
    )
    assert [mailbox.address for mailbox in checked.recipients] == [
        "Ada@example.org",
        "bob@example.org",
        "eve@xn--bcher-kva.example",
        "zoe@example.org",
    ]
    assert [len(checked.to), len(checked.cc), len(checked.bcc)] == [2, 2, 3]


def test_recipients_come_in_the_order_in_which_they_were_first_written() -> None:
    checked = check(to=("ada@example.org", "bob@example.org"), cc=("ADA@example.org",), bcc=("Zoe@example.org",))
    assert [mailbox.written for mailbox in checked.recipients] == [
        "ada@example.org",
        "bob@example.org",
        "Zoe@example.org",
    ]


def test_fifty_unique_addresses_pass_and_one_more_does_not() -> None:
    assert len(check(to=people(20), cc=people(20, 20), bcc=people(10, 40)).recipients) == 50
    message = refusal(to=people(20), cc=people(20, 20), bcc=people(11, 40))
    assert message.startswith("to, cc, bcc: 51 unique addresses; at most 50")
    assert len(check(to=people(50), cc=people(50), bcc=people(50)).recipients) == 50


def test_a_hopeless_list_is_refused_before_its_members_are_read() -> None:
    most = send_request.MAX_ADDRESSES
    assert len(check(to=people(50) * (most // 50)).recipients) == 50
    assert refusal(to=("bob@",) * (most + 1)).startswith(f"to: {most + 1} addresses; at most 50")


# Subject


def test_a_subject_has_1_to_500_characters() -> None:
    for subject in ("x", "x" * 500, "ü" * 500, "☃️" * 250, "7 * 7 = {{ 49 }}"):
        assert check(subject=subject).subject == subject
    for subject in ("", "x" * 501, "ü" * 501):
        assert refusal(subject=subject) == f"subject: has {len(subject)} characters; 1 to 500 characters on one line"


@pytest.mark.parametrize("evil", [*LINE_BREAKS, ENCODED_WORD, "\udcff"])
def test_a_subject_is_one_line(evil: str) -> None:
    assert refusal(subject=f"Hello{evil}").startswith("subject: ")


def test_a_subject_is_required_unless_a_template_supplies_it() -> None:
    assert refusal(subject=None) == "subject: is required unless a template supplies it"
    assert check(subject=None, text=None, template="welcome").subject is None
    assert check(subject="Own", text=None, template="welcome").subject == "Own"


# Content


def test_one_of_text_html_attachments_template_is_enough() -> None:
    file = send_request.Attachment("a.txt", "QQ==")
    assert check(text="Hi", html=None).text == "Hi"
    assert check(text=None, html="<p>Hi").html == "<p>Hi"
    assert check(text=None, attachments=(file,)).attachments[0].content == b"A"
    assert check(text=None, template="welcome").template == "welcome"
    for nothing in (None, ""):
        assert refusal(text=nothing, html=nothing) == "text: give at least one of text, html, attachments, template"


def test_an_empty_body_counts_as_not_given() -> None:
    checked = check(text="", html="<p>Hi")
    assert (checked.text, checked.html) == (None, "<p>Hi")
    assert check(text="", html="", template="welcome").template == "welcome"


@pytest.mark.parametrize("field", ["text", "html"])
def test_a_template_is_not_combined_with_a_body(field: str) -> None:
    assert refusal(**{"text": None, field: "Hi"}, template="welcome").startswith("template: cannot be combined")


@pytest.mark.parametrize("field", ["text", "html"])
def test_a_body_may_hold_line_breaks_but_no_nul(field: str) -> None:
    body = "one\ntwo\r\nthree\rfour \u2028 \x85 ☃"
    assert getattr(check(**{field: body}), field) == body
    assert refusal(**{field: "a\0b"}) == f"{field}: the character U+0000 is not allowed in mail"


def test_a_template_is_named_by_its_alias() -> None:
    for alias in ("welcome", "a", "0", "_-_", "a" * 64):
        assert check(text=None, template=alias).template == alias


@pytest.mark.parametrize(
    "alias", ["", "a" * 65, "Welcome", "a b", "a/b", "wel\0come", "welcome\n", "wélcome", "\udcff"]
)
def test_what_cannot_be_an_alias_is_refused_without_asking_the_store(alias: str) -> None:
    assert refusal(text=None, template=alias).startswith("template: ")


def test_variables_belong_to_a_template() -> None:
    assert refusal(variables={"name": "Ada"}) == "variables: only allowed with template"
    assert refusal(variables={}) == "variables: only allowed with template"
    assert check(text=None, template="welcome", variables={"name": "Ada"}).variables == {"name": "Ada"}
    assert check(text=None, template="welcome").variables == {}


def test_32_variables_pass_and_one_more_does_not() -> None:
    values = {f"name{number}": number for number in range(33)}
    assert refusal(text=None, template="welcome", variables=values) == "variables: 33 values; at most 32 are allowed"
    del values["name0"]
    assert check(text=None, template="welcome", variables=values).variables == values


# Headers

ALLOWED = [
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "In-Reply-To",
    "References",
    "X-Campaign",
    "X-Servicer",
    "Priority",
]
RESERVED = (
    "From Sender To Cc Bcc Subject Reply-To Date Message-ID Return-Path Received MIME-Version DKIM-Signature "
    "Authentication-Results Delivered-To Errors-To Content-Type Content-Transfer-Encoding Content-X ARC-Seal "
    "ARC-Message-Signature Resent-From Resent-Bcc X-Service-Tag X-Service-Anything Idempotency-Key"
).split()


def test_ordinary_headers_pass() -> None:
    for name in ALLOWED:
        assert check(headers={name: "<https://example.com/u?id=1>"}).headers == {name: "<https://example.com/u?id=1>"}


def test_reserved_headers_are_refused_in_any_case() -> None:
    for written in (case for name in RESERVED for case in (name, name.lower(), name.upper(), name.swapcase())):
        assert refusal(headers={written: "x"}) == (f"headers['{written}']: this name is reserved for Postroad")


@pytest.mark.parametrize(
    "name", ["", " ", "X A", "X-A:", "X-A ", " X-A", "X-Ä", "X\tA", "X" * 77, *LINE_BREAKS, "X-A\r\nBcc"]
)
def test_a_header_name_is_a_token(name: str) -> None:
    assert refusal(headers={name: "x"}).startswith("headers[")


@pytest.mark.parametrize("evil", [*LINE_BREAKS, ENCODED_WORD, "\udcff"])
def test_a_header_value_is_one_line(evil: str) -> None:
    assert refusal(headers={"X-A": f"x{evil}"}).startswith("headers['X-A']: ")


@pytest.mark.parametrize("name", ["List-Unsubscribe", "references", "IN-REPLY-TO"])
def test_a_header_of_addresses_takes_ascii_only(name: str) -> None:
    assert refusal(headers={name: "<https://example.com/ü>"}).startswith(f"headers['{name}']: ")
    assert check(headers={"X-Free-Text": "grüße"}).headers == {"X-Free-Text": "grüße"}


def test_names_that_differ_in_case_are_one_header() -> None:
    assert refusal(headers={"X-Aa": "1", "X-B": "2", "x-aA": "1"}) == (
        "headers['x-aA']: the same header as 'X-Aa', because case does not matter in names; give it once"
    )


@pytest.mark.parametrize(
    "value",
    [
        "<https://example.com/u>",
        "<mailto:stop@example.com>",
        "<MAILTO:stop@example.com?subject=a,b>,<HTTPS://example.com/u?a=b,c>",
        " <https://example.com/u> ,\t<mailto:stop@example.com>\t",
        "<https://x>",
    ],
)
def test_list_unsubscribe_is_a_list_of_links(value: str) -> None:
    assert check(headers={"list-Unsubscribe": value}).headers == {"list-Unsubscribe": value}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "not a url",
        "https://example.com/u",
        "mailto:stop@example.com",
        "<http://example.com/u>",
        "<javascript:alert(1)>",
        "<https:>",
        "<https://>",
        "<mailto:>",
        "<>",
        "<https://example.com/u",
        "<https://example.com/a b>",
        "<https://example.com/<a>>",
        "<https://example.com/u> <mailto:stop@example.com>",
        "<https://example.com/u>;<mailto:stop@example.com>",
        "<https://example.com/u>,",
        ",<https://example.com/u>",
        "<https://example.com/u>, stop@example.com",
        "Stop <https://example.com/u>",
        "<https://example.com/u> (comment)",
    ],
)
def test_any_other_list_unsubscribe_is_refused(value: str) -> None:
    for name in ("List-Unsubscribe", "LIST-UNSUBSCRIBE"):
        assert refusal(headers={name: value}) == (
            f"headers['{name}']: must be '<https://…>' or '<mailto:…>', or several of them separated by commas"
        )


def test_a_header_line_has_at_most_998_octets() -> None:
    for filler in ("x", "ü"):
        fits = filler * ((998 - len("X-A: ")) // len(filler.encode()))
        assert check(headers={"X-A": fits}).headers == {"X-A": fits}
        assert refusal(headers={"X-A": fits + filler}) == "headers['X-A']: longer than 998 octets with its name"


def test_50_headers_pass_and_one_more_does_not() -> None:
    headers = {f"X-{number}": "x" for number in range(51)}
    assert refusal(headers=headers) == "headers: 51 custom headers; at most 50 are allowed"
    del headers["X-0"]
    assert check(headers=headers).headers == headers


def test_a_name_in_a_message_is_cut() -> None:
    assert len(refusal(headers={"X" * 100_000: "x"})) < 300


# Tags


def test_tags_pass_and_repeated_ones_collapse() -> None:
    assert check(tags=("b", "a", "b", "ü x", "a")).tags == ("b", "a", "ü x")


@pytest.mark.parametrize("tag", ["x", "x" * 128, "ü" * 128, "a b", "👩‍💻", "{}[]'\""])
def test_a_tag_has_1_to_128_printable_characters(tag: str) -> None:
    assert check(tags=(tag,)).tags == (tag,)


@pytest.mark.parametrize("tag", ["", "x" * 129, "a\tb", *LINE_BREAKS, ENCODED_WORD, "\udcff", "\u202egnat"])
def test_anything_else_is_no_tag(tag: str) -> None:
    assert refusal(tags=("fine", tag)).startswith("tags[1]: ")


def test_20_tags_pass_and_one_more_does_not() -> None:
    tags = tuple(string.ascii_lowercase)
    assert check(tags=tags[:20]).tags == tags[:20]
    assert refusal(tags=tags[:21]) == "tags: 21 tags; at most 20 are allowed"


def test_lists_and_objects_in_variables_have_a_depth_and_a_size() -> None:
    def nested(depth: int) -> object:
        return "x" if depth == 0 else [nested(depth - 1)]

    message = {"text": None, "template": "welcome"}
    rule = "variables: lists and objects may be nested 16 deep and have 10000 values in all"
    assert check(**message, variables={"a": nested(16)}).variables == {"a": nested(16)}
    assert refusal(**message, variables={"a": nested(17)}) == rule
    assert check(**message, variables={"a": [0] * 5_000, "b": {str(key): None for key in range(5_000)}}).variables
    assert refusal(**message, variables={"a": [0] * 5_000, "b": [[0] * 5_000]}) == rule


# Whatever comes

TEXT = st.text(max_size=60)
ANYTHING = st.builds(
    send_request.SendRequest,
    sender=TEXT,
    to=st.lists(TEXT | st.just("a@example.org"), max_size=3).map(tuple),
    cc=st.lists(TEXT, max_size=2).map(tuple),
    bcc=st.lists(TEXT, max_size=2).map(tuple),
    reply_to=st.none() | TEXT | st.lists(TEXT, max_size=11).map(tuple),
    subject=st.none() | TEXT,
    text=st.none() | TEXT,
    html=st.none() | TEXT,
    template=st.none() | TEXT,
    variables=st.none() | st.dictionaries(TEXT, TEXT | st.integers() | st.booleans(), max_size=3),
    headers=st.dictionaries(TEXT, TEXT, max_size=3),
    tags=st.lists(TEXT, max_size=3).map(tuple),
    attachments=st.lists(
        st.builds(
            send_request.Attachment,
            filename=TEXT,
            content=TEXT,
            content_type=st.none() | TEXT,
            content_id=st.none() | TEXT,
        ),
        max_size=3,
    ).map(tuple),
)


@given(ANYTHING)
def test_whatever_comes_is_checked_or_refused_and_never_a_fault(request: send_request.SendRequest) -> None:
    try:
        checked = validation.check(request)
    except errors.InvalidRequest as refused:
        field, _, what = refused.message.partition(": ")
        assert field
        assert what
    else:
        assert checked.recipients
