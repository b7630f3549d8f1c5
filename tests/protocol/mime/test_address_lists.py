"""Lists of addresses as clients write them: the standard library agrees, and every address is a strict one."""

import email.headerregistry
import email.policy
import email.utils

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import address, address_lists

NAMES = st.text("abc XYZ019.,:;<>()[]@\"'\\_-/%&éüß漢字😀", max_size=20).map(lambda name: " ".join(name.split()))
LOCALS = st.from_regex(r"[a-z0-9!#$%&'*+/^_`{|}~-]{1,20}(\.[a-z0-9]{1,5})?", fullmatch=True)
DOMAINS = st.from_regex(r"([a-z0-9]{1,10}\.){1,2}[a-z]{2,6}", fullmatch=True)
MAILBOXES = st.builds(lambda name, local, domain: (name, f"{local}@{domain}"), NAMES, LOCALS, DOMAINS)
ADA = "ada@example.com"


def read(text: str) -> list[tuple[str | None, str]]:
    return [(mailbox.display_name, mailbox.address) for mailbox in address_lists.parse_list(text)]


@hypothesis.given(st.lists(MAILBOXES, min_size=1, max_size=4))
def test_what_the_standard_library_writes_is_read(mailboxes: list[tuple[str, str]]) -> None:
    value = ", ".join(email.utils.formataddr(mailbox) for mailbox in mailboxes)
    reference = email.policy.SMTP.header_factory("To", value)
    expected = [(one.display_name or None, f"{one.username}@{one.domain}") for one in reference.addresses]
    assert read(value) == expected
    assert [mailbox for _, mailbox in expected] == [mailbox for _, mailbox in mailboxes]


@pytest.mark.parametrize(
    "text, mailboxes",
    [
        ("", []),
        (" , ,", []),
        (ADA, [(None, ADA)]),
        (f"<{ADA}>", [(None, ADA)]),
        (f"< {ADA} > ,", [(None, ADA)]),
        (f"Ada <{ADA}>", [("Ada", ADA)]),
        (f"Ada<{ADA}>", [("Ada", ADA)]),
        (f"Ada\t  King <{ADA}>", [("Ada King", ADA)]),
        (f"J. R. O'Neil-Smith <{ADA}>", [("J. R. O'Neil-Smith", ADA)]),
        (f'"Ada, Countess" <{ADA}>', [("Ada, Countess", ADA)]),
        (f'"a \\"b\\" \\\\ c" <{ADA}>', [('a "b" \\ c', ADA)]),
        (f'"Ada\tKing" <{ADA}>', [("Ada King", ADA)]),
        (f'"" <{ADA}>', [(None, ADA)]),
        (f'Ada "the Countess" King <{ADA}>', [("Ada the Countess King", ADA)]),
        (f"=?utf-8?q?B=C3=BCro?= <{ADA}>", [("Büro", ADA)]),
        (f"=?iso-8859-1?Q?B=FCro?= Bonn <{ADA}>", [("Büro Bonn", ADA)]),
        (f"=?utf-8?b?QsO8?= =?utf-8?b?cm8=?= <{ADA}>", [("Büro", ADA)]),
        (f"=?utf-8?b?QsM=?=\t =?utf-8?b?vHJv?= <{ADA}>", [("Büro", ADA)]),
        (f'"=?utf-8?q?B=C3=BCro?=" <{ADA}>', [("Büro", ADA)]),
        (f"=?utf-8?q?Ada=2C_Countess?= <{ADA}>", [("Ada, Countess", ADA)]),
        (f"Büro <{ADA}>", [("Büro", ADA)]),
        ("Büro <bü@köln.example>", [("Büro", "bü@xn--kln-sna.example")]),
        (f"{ADA} (Ada King)", [(None, ADA)]),
        (f"(a (b \\) c) d) Ada (e) <{ADA}> (f)", [("Ada", ADA)]),
        (f'"(no comment)" <{ADA}>', [("(no comment)", ADA)]),
        ("undisclosed-recipients:;", []),
        ("undisclosed-recipients: ;", []),
        (f"Team: Ada <{ADA}>, {ADA}; , {ADA}", [("Ada", ADA), (None, ADA), (None, ADA)]),
        (f'"A: team":{ADA};', [(None, ADA)]),
        (f"{ADA}; bo@example.com;", [(None, ADA), (None, "bo@example.com")]),
        (f"{ADA}, {ADA}", [(None, ADA), (None, ADA)]),
    ],
)
def test_the_forms_of_real_mail_are_read(text: str, mailboxes: list[tuple[str | None, str]]) -> None:
    assert read(text) == mailboxes


@pytest.mark.parametrize(
    "text, why",
    [
        ("Ada", "there is no '@'"),
        ("Ada <>", "there is no '@'"),
        ("<>", "it is empty"),
        (f"{ADA} bo@example.com", "more than one '@'"),
        (f"<{ADA}> <bo@example.com>", "a comma is required between '<…>' and the next address"),
        (f"<{ADA}> Ada", "a comma is required between '<…>' and the next address"),
        (f"bank@example.org <{ADA}>", "'@' must be in double quotes"),
        (f"Ada [Team] <{ADA}>", "'\\[' must be in double quotes"),
        (f"=?utf-8?q?bank@example.org?= <{ADA}>", "'@' must be in double quotes"),
        (f"=?utf-8?q?<bank@example.org>?= <{ADA}>", "a comma is required"),
        ("<@relay.example:ada@example.com>", "nothing precedes the '@'"),
        ("<@relay.example,@b.example:ada@example.com>", "only one address"),
        ("ada @ example.com", "is not allowed before the '@'"),
        ("ada(x)@example.com", "' ' is not allowed before the '@'"),
        ('"ada"@example.com', "quoted local parts"),
        ("ada@[192.0.2.1]", "address in brackets"),
        ("ada@localhost", "the domain has no dot"),
        ('"Ada <a@example.com>', "'\"' that is never closed"),
        ("(Ada <a@example.com>", "'\\(' that is never closed"),
        ("Ada <a@example.com", "'<' that is never closed"),
        ("Ada a@example.com>", "unmatched '>'"),
        ("Ada) <a@example.com>", "unmatched '\\)'"),
        (f"mailto:{ADA}", "the closing ';' is missing"),
        (f": {ADA};", "':' is allowed only after a group name"),
        (f"a: b: {ADA};;", "':' is allowed only after a group name"),
        (f"<{ADA}>: bo@example.com;", "':' is allowed only after a group name"),
        (f"{ADA}: bo@example.com;", "'@' must be in double quotes"),
        (f"=?utf-8?q?=0D=0ABcc:?= <{ADA}>", "the closing ';' is missing"),
        (f"=?utf-8?q?=0D=0ABcc=3A?= <{ADA}>", "forbidden character U\\+000D"),
        (f"=?utf-8?q?=E2=80=A8?= <{ADA}>", "forbidden character U\\+2028"),
        (f"a\r\nb <{ADA}>", "forbidden character U\\+000D"),
        (f"=?unknown?q?a?= <{ADA}>", "begins an encoded word"),
        (f"=?utf-8?q?=3D=3Futf-8=3Fq=3Fa=3F=3D?= <{ADA}>", "begins an encoded word"),
        (f"{'a' * 256} <{ADA}>", "the name is longer than 255"),
    ],
)
def test_what_readers_might_read_in_two_ways_is_refused(text: str, why: str) -> None:
    with pytest.raises(address.AddressError, match=why):
        address_lists.parse_list(text)


@hypothesis.given(MAILBOXES)
def test_what_is_shown_as_written_means_the_same_to_the_strict_parser(mailbox: tuple[str, str]) -> None:
    name, plain = mailbox
    shown = str(email.headerregistry.Address(name, addr_spec=plain))
    (read_once,) = address_lists.parse_list(shown)
    assert read_once.display_name == (name or None)
    assert read_once.written_address == plain
    assert address.parse(read_once.written) == read_once


@hypothesis.given(st.text('ab@.<>()[]",:;\\ \t=?qé\r\n', max_size=60))
def test_any_text_gives_strict_addresses_or_an_address_error(text: str) -> None:
    try:
        mailboxes = address_lists.parse_list(text)
    except address.AddressError:
        return
    for mailbox in mailboxes:
        assert address.parse(mailbox.written) == mailbox


def test_a_hundred_addresses_are_read_and_no_more() -> None:
    many = [f"u{number}@example.com" for number in range(100)]
    assert [mailbox for _, mailbox in read(", ".join(many))] == many
    with pytest.raises(address.AddressError, match="more than 100 addresses"):
        address_lists.parse_list(", ".join([*many, ADA]))
    named = ", ".join(f'"{one}" <{one}>' for one in many)
    assert [mailbox for _, mailbox in read(named)] == many


@pytest.mark.parametrize("domain", ["é.example", "xn--9ca.example"])
def test_no_domain_of_an_endless_list_is_converted(domain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[str] = []

    def convert(text: str) -> str:
        converted.append(text)
        return "a.example"

    monkeypatch.setattr(address, "_to_a_labels", convert)
    assert len(address_lists.parse_list(f"a@{domain}, b@{domain}")) == len(converted) == 2
    with pytest.raises(address.AddressError, match="more than 100 addresses"):
        address_lists.parse_list(",".join([f"a@{domain}"] * 2_700))
    assert len(converted) == 2


@hypothesis.given(st.lists(MAILBOXES, min_size=1, max_size=1) | st.lists(MAILBOXES, max_size=3))
def test_the_short_way_for_plain_mailboxes_reads_what_the_long_way_reads(mailboxes: list[tuple[str, str]]) -> None:
    value = ", ".join(email.utils.formataddr(mailbox) for mailbox in mailboxes)
    # The empty elements change nothing, but that the value is not a plain one.
    assert address_lists.parse_list(value) == address_lists.parse_list(f", {value},")


@pytest.mark.parametrize("text", [f"Team: {ADA};", "nobody:;", f"{ADA}, Team: {ADA};"])
def test_groups_are_refused_where_one_mailbox_is_expected(text: str) -> None:
    with pytest.raises(address.AddressError, match="a group of addresses, which is not allowed here"):
        address_lists.parse_list(text, groups=False)


@pytest.mark.parametrize(
    "text, plain",
    [
        (ADA, True),
        (f"<{ADA}>", True),
        (f"Ada <{ADA}>", True),
        (f"Ada<{ADA}>", True),
        (f"Ada\t King  <{ADA}>", True),
        (f'"Ada, C." <{ADA}>', True),
        (f'"a \\" b" <{ADA}>', True),
        (f"=?utf-8?q?B=C3=BCro?= =?utf-8?b?QsO8?= <{ADA}>", True),
        ("", False),
        (f"{ADA},", False),
        (f",{ADA}", False),
        (f"(bank@example.org) {ADA}", False),
        (f"{ADA} (bank@example.org)", False),
        (f"Ada (x) <{ADA}>", False),
        (f"Team: {ADA};", False),
        (f"< {ADA}>", False),
        (f"{ADA}, {ADA}", False),
        (f"<{ADA}> <{ADA}>", False),
        (f"bank@example.org <{ADA}>", False),
        (f'"=?utf-8?q?bank=40example.org?=" <{ADA}>', False),
        (f'Ada "the" King <{ADA}>', False),
    ],
)
def test_only_what_every_reader_sees_alike_is_plain(text: str, plain: bool) -> None:  # noqa: FBT001
    assert address_lists.is_plain(text) is plain


# Where every character begins something, a reader that looked ahead from each of them would never finish with this.
@pytest.mark.parametrize(
    "pattern", ["(", '"', "<", "(\\", '"\\', "a ", "a,", ",", "a:", "=?", "()", '"a"', "(()", "@", " "]
)
def test_a_long_hostile_list_is_soon_refused_or_read(pattern: str) -> None:
    refusal = ""
    try:
        assert address_lists.parse_list(pattern * (256 * 1024 // len(pattern))) == ()
    except address.AddressError as error:
        refusal = str(error)
    assert len(refusal) < 300
