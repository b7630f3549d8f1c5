"""The interface, "Send request": each row of the table, then its rules. What was stored is parsed again."""

import email
import email.header
from email.message import EmailMessage
from typing import Any

import pytest

from tests.conformance import live_service
from tests.conformance.live_service import ABSENT

TEMPLATE: dict[str, Any] = {"template": "welcome", "variables": {"name": "Ada"}, "text": ABSENT, "subject": ABSENT}
ADDRESSES = [
    "ada@example.org",
    "Ada.Lovelace+tag@mail.example.org",
    "Ada Lovelace <ada@example.org>",
    '"Lovelace, Ada" <ada@example.org>',
    "Ädä <ada@example.org>",
    "ada@bücher.example",
    "ädä@example.org",
]
NOT_ADDRESSES = [
    "",
    " ",
    "ada",
    "ada@",
    "@example.org",
    "ada@example",
    "ada@@example.org",
    "ada@example..org",
    ".ada@example.org",
    "a b@example.org",
    "ada@exa mple.org",
    "ada@-example.org",
    "ada@[127.0.0.1]",
    "ada@127.0.0.1",
    "ada@example.org, bob@example.org",
    "ada@example.org; bob@example.org",
    "ada@example.org (Ada)",
    "Friends: ada@example.org;",
    "<@relay.example:ada@example.org>",
    "Ada <ada@example.org> Lovelace",
    "Ada <ada@example.org",
    '"x\r\nRCPT TO:<v@x.example>"@example.org',
    "a" * 65 + "@example.org",
    "ada@" + "a" * 64 + ".org",
    "ada@" + "a." * 130 + "org",
]


def addresses(field: str, parsed: EmailMessage) -> list[str]:
    return [] if parsed[field] is None else [str(address.addr_spec) for address in parsed[field].addresses]


# from


@pytest.mark.parametrize(
    "sender", ["shop@example.com", "Shop <shop@example.com>", "SHOP@EXAMPLE.COM", "Lädle <a@example.com>"]
)
def test_from_is_a_sender_address(service: live_service.Service, sender: str) -> None:
    """Row `from`: string in email format, with a name if wanted; it stands in the header From."""
    parsed = service.sent(from_=sender)
    assert addresses("From", parsed) == [sender.rpartition("<")[2].strip(">").replace("EXAMPLE.COM", "example.com")]


@pytest.mark.parametrize("sender", [*NOT_ADDRESSES, ["shop@example.com"], 7, True, {}, None, ABSENT])
def test_from_is_required_and_one_address(sqlite_service: live_service.Service, sender: object) -> None:
    """Row `from`: required, one string in email format."""
    assert sqlite_service.refuse(from_=sender).startswith("from: ")


@pytest.mark.parametrize("domain", ["example.org", "mail.example.com", "example.com.evil.example", "example.net"])
def test_from_uses_a_registered_domain(service: live_service.Service, domain: str) -> None:
    """Row `from`: must use a domain registered by the account; the last of these is registered by another one."""
    before = service.balance()
    sentence = live_service.check_refusal(service.post(live_service.message(from_=f"shop@{domain}")), 403, "forbidden")
    assert sentence.startswith(f"from: {domain} is not a domain of this account")
    assert service.balance() == before


# to, cc, bcc


@pytest.mark.parametrize("field", ["to", "cc", "bcc"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_recipients_are_one_address(service: live_service.Service, field: str, address: str) -> None:
    """Rows `to`, `cc`, `bcc`: one address as a string."""
    accepted = service.accept(**{field: address})
    assert accepted[field] == [address]


@pytest.mark.parametrize("field", ["to", "cc", "bcc"])
def test_recipients_are_a_list(service: live_service.Service, field: str) -> None:
    """Rows `to`, `cc`, `bcc`: a list of addresses; one in a list means the same as one alone."""
    assert service.accept(**{field: ADDRESSES})[field] == ADDRESSES
    assert service.accept(**{field: ADDRESSES[:1]})[field] == ADDRESSES[:1]


@pytest.mark.parametrize("field", ["to", "cc", "bcc"])
@pytest.mark.parametrize("bad", [*NOT_ADDRESSES, 7, True, {}, [7], [None], [["a@example.org"]], [""]])
def test_recipients_are_addresses_and_nothing_else(
    sqlite_service: live_service.Service, field: str, bad: object
) -> None:
    """Rows `to`, `cc`, `bcc`: string or array of email strings; the refusal names the place."""
    assert sqlite_service.refuse(**{field: bad}).startswith(field)
    if isinstance(bad, str):
        assert sqlite_service.refuse(**{field: ["good@example.org", bad]}).startswith(f"{field}[1]: ")


@pytest.mark.parametrize("nobody", [[], None, ABSENT])
def test_to_is_required_and_cc_and_bcc_are_not(service: live_service.Service, nobody: object) -> None:
    """Rows `to`, required, and `cc` and `bcc`, not."""
    assert service.refuse(to=nobody, cc="ada@example.org").startswith("to: ")
    accepted = service.accept(cc=nobody, bcc=nobody)
    assert (accepted["cc"], accepted["bcc"]) == ([], [])


def test_to_and_cc_stand_in_the_headers(service: live_service.Service) -> None:
    """Rows `to` and `cc`: as written, the domains as A-labels."""
    parsed = service.sent(to=["Ada <ada@example.org>", "Ädä <b@bücher.example>"], cc="Ada <ada@example.org>")
    assert [str(one) for one in parsed["To"].addresses] == [
        "Ada <ada@example.org>",
        "Ädä <b@xn--bcher-kva.example>",
    ]
    assert addresses("Cc", parsed) == ["ada@example.org"]


def test_fifty_long_names_stand_in_the_headers(service: live_service.Service) -> None:
    """Rows `to` and `cc`: headers of any length and script are folded so that every reader unfolds them."""
    names = [f"Ädä {number} von und zu {'Ø' * (number % 30 + 1)} 😀, Gräfin" for number in range(50)]
    written = [f'"{name}" <person{number}@example.org>' for number, name in enumerate(names)]
    accepted = service.accept(to=written[:25], cc=written[25:])
    raw = service.raw(accepted["id"])
    assert max(len(line) for line in raw.split(b"\r\n")) <= 78
    # The library's newer parser takes the space between two encoded words for one of the name (RFC 2047 section 6.2
    # says that it is none), so the older one is the reference here.
    parsed = email.message_from_bytes(raw)
    fields = [str(email.header.make_header(email.header.decode_header(parsed[field]))) for field in ("To", "Cc")]
    expected = [f"{name} <person{number}@example.org>" for number, name in enumerate(names)]
    assert fields == [", ".join(expected[:25]), ", ".join(expected[25:])]


def test_bcc_stands_nowhere_in_the_message(service: live_service.Service) -> None:
    """Row `bcc`: not written into the MIME headers, nor anywhere else."""
    accepted = service.accept(bcc=["Hidden <eve-hidden@example.org>", "mallory-hidden@bücher.example"])
    raw = service.raw(accepted["id"]).lower()
    assert b"bcc:" not in raw  # with its colon: three letters alone can stand in an id
    assert b"hidden" not in raw
    assert [one["email"] for one in service.read(accepted["id"])["recipients"]] == [
        "ada@example.org",
        "eve-hidden@example.org",
        "mallory-hidden@bücher.example",
    ]


# reply_to


@pytest.mark.parametrize("address", ADDRESSES)
def test_reply_to_is_one_address(service: live_service.Service, address: str) -> None:
    """Row `reply_to`: a single address, written into Reply-To; of any domain."""
    accepted = service.accept(reply_to=address)
    assert accepted["reply_to"] == address
    assert len(addresses("Reply-To", live_service.parse(service.raw(accepted["id"])))) == 1


def test_a_list_of_one_for_replies_is_that_address(service: live_service.Service) -> None:
    """Row `reply_to`: a single address, in a list too; the request is the same, and so is its answer."""
    key, body = live_service.new_key(), live_service.message(reply_to=["Help <help@example.org>"])
    first = service.post(body, key=key)
    assert (first.status_code, first.json()["reply_to"]) == (202, "Help <help@example.org>")
    again = service.post({**body, "reply_to": "Help <help@example.org>"}, key=key)
    assert (again.status_code, again.content) == (202, first.content)


@pytest.mark.parametrize("bad", [*NOT_ADDRESSES, ["help@"], 7, {}])
def test_reply_to_is_an_address_and_nothing_else(sqlite_service: live_service.Service, bad: object) -> None:
    """Row `reply_to`: string in email format, a single one."""
    assert sqlite_service.refuse(reply_to=bad).startswith("reply_to: ")


def test_reply_to_is_not_required(service: live_service.Service) -> None:
    """Row `reply_to`: not required; without it there is no such header."""
    assert service.sent()["Reply-To"] is None
    assert service.sent(reply_to=None)["Reply-To"] is None
    assert service.sent(reply_to=[])["Reply-To"] is None


# subject


@pytest.mark.parametrize(
    "subject",
    [
        "x",
        "Hello",
        "Grüße ☃ 日本語",
        "a  b",
        "x" * 500,
        "ü" * 500,
        "😀" * 500,
        "wörd " * 99 + "end",
        "{{name}} =?not?",
        "Re: <b>&amp;</b>",
    ],
)
def test_subject_reaches_the_message_unchanged(service: live_service.Service, subject: str) -> None:
    """Row `subject`: a string of up to 500 characters."""
    assert service.sent(subject=subject)["Subject"] == subject


@pytest.mark.parametrize("subject", [ABSENT, None, "", "x" * 501, 7, ["Hello"]])
def test_subject_is_required_and_bounded(service: live_service.Service, subject: object) -> None:
    """Row `subject`: required without a template, at most 500 characters."""
    assert service.refuse(subject=subject).startswith("subject: ")


def test_subject_may_come_from_the_template(service: live_service.Service) -> None:
    """Row `subject`: unless a template supplies it; one that is given wins."""
    assert service.sent(**TEMPLATE)["Subject"] == "Welcome Ada"
    assert service.sent(**TEMPLATE | {"subject": "Own {{name}}"})["Subject"] == "Own {{name}}"


# text, html


@pytest.mark.parametrize("field, kind", [("text", "plain"), ("html", "html")])
@pytest.mark.parametrize(
    "body", ["Hi", "Grüße ☃ 日本語", "one\ntwo", ".\n..\n.dot", "x" * 2000, "From here\n", "a\ttab", "=3D =\n--x"]
)
def test_text_and_html_reach_the_message_unchanged(
    service: live_service.Service, field: str, kind: str, body: str
) -> None:
    """Rows `text` and `html`: the plain-text and the HTML body."""
    parsed = service.sent(**{"text": ABSENT, field: body})
    assert live_service.text_of(parsed, kind) == body.removesuffix("\n")
    assert parsed.get_content_type() == f"text/{kind}"


def test_text_and_html_together_are_alternatives(service: live_service.Service) -> None:
    """Rows `text` and `html`: both may be given; the reader chooses, html last."""
    parsed = service.sent(text="Hi", html="<p>Hi")
    assert parsed.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in parsed.iter_parts()] == ["text/plain", "text/html"]


@pytest.mark.parametrize("field", ["text", "html"])
@pytest.mark.parametrize("bad", [7, True, ["Hi"], {}, "a\0b"])
def test_text_and_html_are_strings(service: live_service.Service, field: str, bad: object) -> None:
    """Rows `text` and `html`: a string; NUL cannot stand in mail."""
    assert service.refuse(**{field: bad}).startswith(f"{field}: ")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_end_in_crlf_whatever_was_sent(service: live_service.Service, ending: str) -> None:
    """Row `text`: what is stored is ready for the wire, without a bare CR or LF."""
    raw = service.raw(service.accept(text=f"one{ending}.{ending}two")["id"])
    assert b"one\r\n.\r\ntwo" in raw
    assert b"\n" not in raw.replace(b"\r\n", b"")
    assert b"\r" not in raw.replace(b"\r\n", b"")


# template, variables


def test_template_is_filled_in(service: live_service.Service) -> None:
    """Rows `template` and `variables`: values for placeholders; escaped in html only, and never read again."""
    for value, shown in (("Ada", "Ada"), (7, "7"), (1.5, "1.5"), (True, "true"), ("<b>{{ 7*7 }}", "<b>{{ 7*7 }}")):
        parsed = service.sent(**TEMPLATE | {"variables": {"name": value, "unused": "x"}})
        assert parsed["Subject"] == f"Welcome {shown}"
        assert live_service.text_of(parsed, "plain") == f"Hi {shown}"
        escaped = shown.replace("<", "&lt;").replace(">", "&gt;")
        assert live_service.text_of(parsed, "html") == f"<p>Hi {escaped}"


@pytest.mark.parametrize("field", ["text", "html"])
def test_template_is_not_combined_with_a_body(service: live_service.Service, field: str) -> None:
    """Row `template`: must not be combined with `html` or `text`."""
    assert service.refuse(**TEMPLATE | {field: "Hi"}).startswith("template: ")
    service.accept(**TEMPLATE | {field: ""})


@pytest.mark.parametrize("alias", ["unknown", "", "Welcome", "wel\0come", "../welcome", "x" * 65, 7, ["welcome"]])
def test_template_is_an_alias_of_the_account(service: live_service.Service, alias: object) -> None:
    """Row `template`: a template alias; an unknown one is an invalid request."""
    assert service.refuse(**TEMPLATE | {"template": alias}).startswith("template: ")


@pytest.mark.parametrize("value", [["Ada"], {"first": "Ada"}, None])
def test_variables_are_strings_numbers_and_booleans(service: live_service.Service, value: object) -> None:
    """Row `variables`: an object of values."""
    assert service.refuse(**TEMPLATE | {"variables": {"name": value}}).startswith("variables")


@pytest.mark.parametrize("bad", [[], "name", 7])
def test_variables_are_an_object(service: live_service.Service, bad: object) -> None:
    """Row `variables`: an object."""
    assert service.refuse(**TEMPLATE | {"variables": bad}).startswith("variables: ")


def test_a_placeholder_without_a_value_is_named(service: live_service.Service) -> None:
    """Row `variables`: values for the placeholders; a missing one is named."""
    for variables in ({}, ABSENT, {"Name": "Ada"}):
        assert "'name'" in service.refuse(**TEMPLATE | {"variables": variables})


def test_variables_need_a_template(service: live_service.Service) -> None:
    """Row `variables`: when `template` is given."""
    assert service.refuse(variables={"name": "Ada"}).startswith("variables: ")


# headers

RESERVED = (
    "From Sender To Cc Bcc Subject Reply-To Date Message-ID Return-Path Received MIME-Version DKIM-Signature "
    "Authentication-Results Delivered-To Errors-To Content-Type Content-Transfer-Encoding Content-Disposition "
    "ARC-Seal Resent-To X-Service-Tag X-Service-Signature"
).split()


def test_headers_reach_the_message(service: live_service.Service) -> None:
    """Row `headers`: custom MIME headers, for example a list-unsubscribe header or an X- header."""
    given = {
        "List-Unsubscribe": "<https://example.com/u?id=1>, <mailto:u@example.com>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        "X-Campaign": "Frühling ☃",
        "X-Long": " ".join(["word"] * 180),
        "In-Reply-To": "<1@example.org>",
        "References": "<1@example.org> <2@example.org>",
        "X-Empty": "",
    }
    parsed = service.sent(headers=given)
    assert {name: parsed[name] for name in given} == given


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_header_names_are_rejected(sqlite_service: live_service.Service, name: str) -> None:
    """Row `headers`: reserved names are rejected, in any case."""
    for written in (name, name.upper(), name.lower(), name.swapcase()):
        assert "reserved" in sqlite_service.refuse(headers={written: "x"})


@pytest.mark.parametrize(
    "bad",
    [[], "X-A: 1", 7, {"X-A": 7}, {"X-A": None}, {"X-A": ["1"]}, {"": "x"}, {"X A": "x"}, {"X-A:": "x"}, {"X-Ä": "x"}],
)
def test_headers_are_an_object_of_strings(service: live_service.Service, bad: object) -> None:
    """Row `headers`: an object, string to string, whose names are header names."""
    assert service.refuse(headers=bad).startswith("headers")


# tags


def test_tags_stand_in_the_message_one_line_each(service: live_service.Service) -> None:
    """Row `tags`: string or array of strings, written onto the message as X-Service-Tag."""
    assert service.sent(tags="welcome").get_all("X-Service-Tag") == ["welcome"]
    assert service.sent(tags=["a", "büro ☃", "a"]).get_all("X-Service-Tag") == ["a", "büro ☃"]
    assert service.sent(tags=[]).get_all("X-Service-Tag") is None


@pytest.mark.parametrize("bad", ["", "x" * 129, 7, {}, [""], [7], ["a", None], "a\tb", ["a\nb"]])
def test_tags_are_short_and_printable(service: live_service.Service, bad: object) -> None:
    """Row `tags`: each of 1 to 128 printable characters."""
    assert service.refuse(tags=bad).startswith("tags")


# attachments


@pytest.mark.parametrize("bad", [{}, "a.txt", 7, ["a.txt"], [None], [[]]])
def test_attachments_are_an_array_of_objects(service: live_service.Service, bad: object) -> None:
    """Row `attachments`: an array of attachment objects; those are in test_attachments.py."""
    assert service.refuse(attachments=bad).startswith("attachments")


# The request as a whole


@pytest.mark.parametrize(
    "name", ["reply-to", "Subject", "body", "account_id", "status", "id", "", "from ", "__proto__"]
)
def test_unknown_members_are_refused_by_name(service: live_service.Service, name: str) -> None:
    """The table as a whole: a member that is not in it is refused, so that a mistyped one is not lost."""
    response = service.post(live_service.message() | {name: "x"})
    assert "unknown member" in live_service.check_refusal(response, 400, "invalid_request")


@pytest.mark.parametrize(
    "field", ["cc", "bcc", "reply_to", "html", "template", "variables", "headers", "tags", "attachments"]
)
def test_null_means_the_same_as_leaving_out(service: live_service.Service, field: str) -> None:
    """The column "Required": what is not required may be absent or null."""
    accepted = service.accept(**{field: None})
    bare = service.accept()
    same = {"id": "", "request_id": ""}
    assert accepted | same == bare | same


# Rules


def test_rule_1_something_has_to_be_sent(service: live_service.Service) -> None:
    """Rule 1: at least one of `text`, `html`, `attachments`, `template`; an empty string or list is none."""
    for nothing in (
        {"text": ABSENT},
        {"text": None},
        {"text": ""},
        {"text": "", "html": ""},
        {"text": "", "attachments": []},
    ):
        assert service.refuse(**nothing).startswith("text: ")
    service.accept(text=ABSENT, html="<p>Hi")
    service.accept(text=ABSENT, attachments=[{"filename": "a.txt", "content": ""}])
    service.accept(**TEMPLATE)


def test_rule_2_unique_addresses_are_counted_and_billed_once(service: live_service.Service) -> None:
    """Rule 2: unique across `to`, `cc`, `bcc`, without regard to case, name or writing of the domain."""
    before = service.balance()
    accepted = service.accept(
        to=["ada@example.org", "Ada <ADA@Example.ORG>", "eve@bücher.example"],
        cc=["ada@example.org", "bob@example.org"],
        bcc=["Bob <BOB@example.org>", "eve@xn--bcher-kva.example"],
    )
    assert (accepted["recipient_count"], accepted["credits_reserved"]) == (3, 3)
    assert service.balance() == (before[0] - 3, before[1] + 3)
    stored = service.read(accepted["id"])
    assert [one["email"] for one in stored["recipients"]] == [
        "ada@example.org",
        "eve@bücher.example",
        "bob@example.org",
    ]
    parsed = live_service.parse(service.raw(accepted["id"]))
    assert addresses("To", parsed) == ["ada@example.org", "ADA@example.org", "eve@xn--bcher-kva.example"]
    assert addresses("Cc", parsed) == ["ada@example.org", "bob@example.org"]
