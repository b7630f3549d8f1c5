"""The one parser of addresses: what it takes, what it refuses, and that it says so in safe words."""

import email.headerregistry
import email.utils
import re
from collections.abc import Callable

import hypothesis
import idna
import jsonschema_rs
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import address

# Every character that some reader takes for a line break, ends a string, or turns the direction of the text.
DANGEROUS = ["\r", "\n", "\r\n", "\0", "\t", "\x0b", "\x0c", "\x1b", "\x1c", "\x7f", "\x85", "\u2028", "\u2029"]
TURNING = ["\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"]


@pytest.mark.parametrize(
    "text, name, local, domain",
    [
        ("user@example.com", None, "user", "example.com"),
        ("User.Name+tag@EXAMPLE.Com", None, "User.Name+tag", "example.com"),
        ("!#$%&'*+/?=^_`{|}~-@example.com", None, "!#$%&'*+/?=^_`{|}~-", "example.com"),
        ("a@b.c", None, "a", "b.c"),
        ("a@1.2.3.example", None, "a", "1.2.3.example"),
        ("a@r3---sn-x.example", None, "a", "r3---sn-x.example"),
        ("  user@example.com ", None, "user", "example.com"),
        ("<user@example.com>", None, "user", "example.com"),
        ("Name <user@example.com>", "Name", "user", "example.com"),
        ("Name<user@example.com>", "Name", "user", "example.com"),
        ("John Q. Public  <user@example.com>", "John Q. Public", "user", "example.com"),
        ('"Quoted, Name" <user@example.com>', "Quoted, Name", "user", "example.com"),
        (r'"a \"b\" \\ c" <user@example.com>', r'a "b" \ c', "user", "example.com"),
        ('"a <b@c.example>" <user@example.com>', "a <b@c.example>", "user", "example.com"),
        ('"" <user@example.com>', None, "user", "example.com"),
        ('"  " <user@example.com>', None, "user", "example.com"),
        ("Jörg Müller <user@example.com>", "Jörg Müller", "user", "example.com"),
        ("山田 太郎 <user@example.com>", "山田 太郎", "user", "example.com"),
        ("😀 <user@example.com>", "😀", "user", "example.com"),
        ("user@bücher.example", None, "user", "xn--bcher-kva.example"),
        ("user@BÜCHER.example", None, "user", "xn--bcher-kva.example"),
        ("user@XN--BCHER-KVA.example", None, "user", "xn--bcher-kva.example"),
        ("user@例え.テスト", None, "user", "xn--r8jz45g.xn--zckzah"),
        ("user@straße.example", None, "user", "xn--strae-oqa.example"),
        ("jörg@example.com", None, "jörg", "example.com"),
        ("jo\u0308rg@example.com", None, "jörg", "example.com"),
        ("用户@例子.广告", None, "用户", "xn--fsqu00a.xn--4rr70v"),
        ("Имя <имя@пример.рф>", "Имя", "имя", "xn--e1afmkfd.xn--p1ai"),
    ],
)
def test_an_address_is_taken_apart(text: str, name: str | None, local: str, domain: str) -> None:
    mailbox = address.parse(text)
    assert (mailbox.display_name, mailbox.local, mailbox.domain, mailbox.written) == (name, local, domain, text)
    assert mailbox.address == f"{local}@{domain}"


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("bob", "there is no '@'"),
        ("bob@", "nothing follows the '@'"),
        ("@example.com", "nothing precedes the '@'"),
        ("a@b@example.com", "there is more than one '@'"),
        ("a b@example.com", "' ' is not allowed before the '@'"),
        ("a@exam ple.com", "'exam ple' is not a valid domain label"),
        (".a@example.com", "begins or ends with a dot"),
        ("a.@example.com", "begins or ends with a dot"),
        ("a..b@example.com", "begins or ends with a dot"),
        ("a@.example.com", "the domain begins or ends with a dot"),
        ("a@example.com.", "the domain begins or ends with a dot"),
        ("a@example..com", "the domain begins or ends with a dot"),
        ("a@localhost", "the domain has no dot"),
        ("a@-example.com", "'-example' is not a valid domain label"),
        ("a@example-.com", "'example-' is not a valid domain label"),
        ("a@exam_ple.com", "'exam_ple' is not a valid domain label"),
        ("a@127.0.0.1", "there is no top-level domain '1'"),
        ("a@example.123", "there is no top-level domain '123'"),
        ("a@[127.0.0.1]", "an address in brackets"),
        ("a@[IPv6:::1]", "an address in brackets"),
        ('"a b"@example.com', "quoted local parts"),
        ('"a"@example.com', "quoted local parts"),
        ("a(comment)@example.com", "comments"),
        ("a@example.com (comment)", "comments"),
        ("(comment) a@example.com", "comments"),
        ("a@example.com, b@example.com", "only one address"),
        ("a@example.com; b@example.com", "only one address"),
        ("Group: a@example.com;", "only one address"),
        ("Group:;", "only one address"),
        ("<@relay.example:a@example.com>", "nothing precedes the '@'"),
        ("<a@example.com", "between '<' and '>'"),
        ("a@example.com>", "a '>' without a '<'"),
        ("Name <a@example.com> x", "between '<' and '>'"),
        ("Name <<a@example.com>>", "'com>' is not a valid domain label"),
        ("< a@example.com>", "' ' is not allowed before"),
        ("Last, First <a@example.com>", "',' must be in double quotes"),
        ("a@b.example <a@example.com>", "'@' must be in double quotes"),
        ("Name (work) <a@example.com>", "'(' must be in double quotes"),
        ('Na"me <a@example.com>', "must be in double quotes"),
        ('"Name <a@example.com>', "a name in double quotes needs"),
        ('"Name" x <a@example.com>', "a name in double quotes needs"),
        ('"Na"me" <a@example.com>', "a name in double quotes needs"),
        ("=?utf-8?q?x?= <a@example.com>", "encoded word"),
        ('"=?utf-8?q?x?=" <a@example.com>', "encoded word"),
        (r'"=\?utf-8\?q\?x\?=" <a@example.com>', "encoded word"),
        ("=?utf-8?q?a?=@example.com", "encoded word"),
        ("a=?b@example.com", "encoded word"),
        ("a＠example.com", "there is no '@'"),
        ("a＠b@example.com", "'＠' is not allowed before"),
        ("a\u037eb@example.com", "';' is not allowed before"),
        ("a\u200bb@example.com", "is not allowed before"),
        ("a\u00a0b@example.com", "is not allowed before"),
        ("\u0301a@example.com", "a combining mark"),
        ("a@xn--zzzzzz.example", "not a valid internationalized domain"),
        ("a@xn--.example", "not a valid internationalized domain"),
        ("a@ex＠mple.com", "not a valid internationalized domain"),
        ("a@\u0301x.example", "not a valid internationalized domain"),
        ("a@bücher", "the domain has no dot"),
        ("a@bücher.１２３", "there is no top-level domain '123'"),
    ],
)
def test_what_is_no_address_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(address.AddressError) as caught:
        address.parse(text)
    assert f"{text!r} is not an email address: " in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize("character", DANGEROUS + TURNING + ["\ud800", "\udfff"])
@pytest.mark.parametrize(
    "shape",
    [
        "{}user@example.com",
        "us{}er@example.com",
        "user@exam{}ple.com",
        "user@example.com{}",
        "Na{}me <user@example.com>",
        '"Na{}me" <user@example.com>',
        "{}Name <user@example.com>",
        "Name <user@example.com>{}",
        "Name{}<u@example.com>",
        '"Na\\{}me" <user@example.com>',
    ],
)
def test_no_dangerous_character_passes_anywhere(shape: str, character: str) -> None:
    with pytest.raises(address.AddressError, match="forbidden character"):
        address.parse(shape.format(character))


@pytest.mark.parametrize(
    "fits, too_long",
    [
        ("a" * 64 + "@example.com", "a" * 65 + "@example.com"),
        ("ü" * 32 + "@example.com", "ü" * 32 + "a@example.com"),
        ("a@" + "b" * 63 + ".example", "a@" + "b" * 64 + ".example"),
        ("a@x." + "b" * 63, "a@x." + "b" * 64),
        ("a@" + "bcdefgh." * 31 + "exam", "a@" + "bcdefgh." * 31 + "examp"),
        ("n" * 255 + " <a@example.com>", "n" * 256 + " <a@example.com>"),
        ('"' + r"\"" * 255 + '" <a@example.com>', '"' + r"\"" * 256 + '" <a@example.com>'),
        ("a@example.com" + " " * 987, "a@example.com" + " " * 988),
    ],
)
def test_sizes_are_limited_exactly(fits: str, too_long: str) -> None:
    address.parse(fits)
    with pytest.raises(address.AddressError):
        address.parse(too_long)


def test_an_address_of_254_octets_fits_even_beside_a_domain_in_another_script() -> None:
    domain = "bcdefgh." * 29 + "ü.exam"
    longest = 254 - len("@" + address.parse(f"a@{domain}").domain)
    assert len(address.parse("a" * longest + "@" + domain).address) == 254
    with pytest.raises(address.AddressError, match="longer than 254 octets"):
        address.parse("a" * (longest + 1) + "@" + domain)


def test_the_key_ignores_case_and_nothing_else() -> None:
    assert address.parse("User@Example.COM").key == address.parse("Name <uSER@example.com>").key
    assert address.parse("JÖRG@BÜCHER.example").key == address.parse("jörg@xn--bcher-kva.example").key
    assert address.parse("jo\u0308rg@example.com").key == address.parse("jörg@example.com").key
    assert address.parse("user+a@example.com").key != address.parse("user@example.com").key
    assert address.parse("straße@example.com").key != address.parse("strasse@example.com").key


def test_a_key_can_be_asked_for_of_what_is_no_address() -> None:
    assert address.key_of("Ada@BÜCHER.example") == "ada@xn--bcher-kva.example"
    assert address.key_of("Mailer Daemon") == "mailer daemon"
    assert address.key_of("") == ""


@pytest.mark.parametrize(
    "text", ["Jo@BÜCHER.example", " Jo@BÜCHER.example ", "<Jo@BÜCHER.example>", '"<a@b.example>" <Jo@BÜCHER.example>']
)
def test_the_address_alone_is_known_as_it_was_written(text: str) -> None:
    assert address.parse(text).written_address == "Jo@BÜCHER.example"


def test_only_a_local_part_in_another_script_needs_smtputf8() -> None:
    assert address.parse("jörg@example.com").needs_smtputf8
    assert not address.parse("Jörg <joerg@bücher.example>").needs_smtputf8


def test_a_long_or_unprintable_address_is_cut_and_escaped_in_the_message() -> None:
    with pytest.raises(address.AddressError) as caught:
        address.parse("\x1b[31m\u202e" + "x" * 5000)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text, domain",
    [("Example.COM", "example.com"), (" example.com ", "example.com"), ("bücher.example", "xn--bcher-kva.example")],
)
def test_a_domain_alone_is_normalised_like_that_of_an_address(text: str, domain: str) -> None:
    assert address.parse_domain(text) == domain


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost", "a@b.example", "ex\r\nample.com", "[::1]", "*.example.com", "a" * 254),
        *("x y", "é é.example", "xn--0.example"),
    ],
)
def test_what_is_no_domain_is_refused_and_named_once(text: str) -> None:
    with pytest.raises(address.AddressError) as refused:
        address.parse_domain(text)
    assert str(refused.value).count("is not a domain name") == 1
    assert not text or str(refused.value).partition(" (")[0].count(text) <= 1


@pytest.mark.parametrize("text", ["https://shop.example", "http://shop.example/", "shop.example/contact"])
def test_the_address_of_a_page_is_distinguished_from_a_domain(text: str) -> None:
    with pytest.raises(address.AddressError, match="give the name alone"):
        address.parse_domain(text)


@hypothesis.given(st.text(max_size=80) | st.text('aZ0.@<>"\\,;:()[] -+_=?éß漢\r\n\0\u2028', max_size=40))
def test_any_text_is_an_address_or_an_address_error(text: str) -> None:
    try:
        mailbox = address.parse(text)
    except address.AddressError as error:
        message = str(error)
    else:
        message = ""
        check_parsed(text, mailbox)
    assert message.isprintable()


def check_parsed(text: str, mailbox: address.Mailbox) -> None:
    assert not {"\r", "\n", "\0"} & set(text)
    again = address.parse(mailbox.address)
    assert (again.local, again.domain) == (mailbox.local, mailbox.domain)
    assert mailbox.domain.isascii()
    assert len(mailbox.address.encode()) <= 254


ATOMS = st.text("abcXYZ019!#$%&'*+/^_`{|}~-", min_size=1, max_size=12)
LABELS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?", fullmatch=True).filter(lambda label: label[2:4] != "--")


@hypothesis.given(
    st.lists(ATOMS, min_size=1, max_size=4),
    st.lists(LABELS, min_size=1, max_size=4),
    st.sampled_from(["com", "example", "co.uk", "museum"]),
)
def test_the_standard_library_agrees_about_ordinary_addresses(atoms: list[str], labels: list[str], top: str) -> None:
    text = f"{'.'.join(atoms)}@{'.'.join(labels)}.{top}"
    mailbox = address.parse(text)
    reference = email.headerregistry.Address(addr_spec=text)
    assert (mailbox.local, mailbox.domain) == (reference.username, reference.domain)
    assert email.utils.parseaddr(text) == ("", mailbox.address)


def test_an_ordinary_address_never_leaves_the_quick_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(address, "_parse_slowly")
    # One that no other test asks for, so that it cannot be remembered.
    assert address.parse("quick.path@example.com").address == "quick.path@example.com"


def test_a_text_gives_the_same_result_each_time() -> None:
    for _ in range(2):
        assert address.parse("Name <User@EXAMPLE.com>").address == "User@example.com"
        with pytest.raises(address.AddressError, match="is not an email address: there is no '@'"):
            address.parse("nobody")


@pytest.mark.parametrize("parse", [address.parse_domain, lambda text: address.parse(f"a@{text}")])
def test_a_refusal_quotes_no_more_of_a_long_domain_than_of_a_long_address(parse: Callable[[str], object]) -> None:
    with pytest.raises(address.AddressError) as refused:
        parse("\xa0" + "x" * 900)
    assert len(str(refused.value)) < 400


# The published pattern of an address.


# Python's `$` also matches before a last line feed; that of JSON Schema, being ECMA's, does not.
PATTERN = re.compile(address.SCHEMA_PATTERN[:-1] + r"\Z")
DOMAIN_PATTERN = re.compile(address.DOMAIN_SCHEMA_PATTERN[:-1] + r"\Z")
WIDE_RANGES = re.findall(r"\\u(\w{4})-\\u(\w{4})", address._LETTERS)
WIDE_LETTERS = [chr(code) for first, last in WIDE_RANGES for code in range(int(first, 16), int(last, 16) + 1)]


@hypothesis.given(st.from_regex(PATTERN))
def test_what_the_pattern_matches_is_accepted(text: str) -> None:
    hypothesis.assume(len(text) <= 1000)
    address.parse(text)


@hypothesis.given(st.from_regex(DOMAIN_PATTERN))
def test_what_the_domain_pattern_matches_is_accepted(text: str) -> None:
    hypothesis.assume(len(text) <= 1000)
    assert address.parse_domain(text).isascii()


@hypothesis.given(st.text('aZ09.@<>"\\,;:()[] -+_=?ü\r\n\0\u2028\u202e', max_size=24))
def test_both_agree_about_any_text_of_the_usual_signs(text: str) -> None:
    try:
        accepted = address.parse(text) is not None
    except address.AddressError:
        accepted = False
    assert (PATTERN.search(text) is not None) == accepted


@pytest.mark.parametrize(
    "text",
    [
        "user@example.com",
        "a" * 64 + "@example.com",
        "a@" + "b" * 63 + ".example",
        "a@" + "bcdefgh." * 31 + "exam",
        "x <" + "a@" + "bcdefgh." * 31 + "exam>",
        "n" * 255 + " <a@example.com>",
        '"' + r"\"" * 255 + '" <a@example.com>',
        " John Q. Public <user@example.com> ",
        '"Quoted, \\"Name\\" <x>" <user@example.com>',
        "Jörg 山田 😀 <jörg@bücher.example>",
        "用户@例子.广告",
        "имя@пример.рф",
        "a@a--b.example",
    ],
)
def test_what_is_accepted_matches(text: str) -> None:
    address.parse(text)
    assert PATTERN.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 65 + "@example.com",
        "a@" + "b" * 64 + ".example",
        "a@" + "bcdefgh." * 31 + "examp",
        "x <" + "a@" + "bcdefgh." * 31 + "examp>",
        "n" * 256 + " <a@example.com>",
        '"' + "n" * 256 + '" <a@example.com>',
        "a@xn--zzzzzz.example",
        "a@example.1",
        "a@localhost",
        "a=?b@example.com",
        "user@example.com\n",
        "a.@example.com",
        "Last, First <a@example.com>",
    ],
)
def test_what_is_refused_does_not_match(text: str) -> None:
    with pytest.raises(address.AddressError):
        address.parse(text)
    assert not PATTERN.search(text)


def test_every_letter_of_other_scripts_in_the_pattern_is_accepted_on_both_sides() -> None:
    assert len(WIDE_LETTERS) > 30_000
    for start in range(0, len(WIDE_LETTERS), 14):
        letters = "".join(WIDE_LETTERS[start : start + 14])
        mailbox = address.parse(f"{letters}@{letters}.example")
        assert mailbox.local == letters
        assert idna.decode(mailbox.domain) == f"{letters}.example"


def test_the_longest_labels_of_the_pattern_fit_their_punycode() -> None:
    last = len(WIDE_LETTERS) - 1
    spread = [WIDE_LETTERS[index * last // 13] for index in range(14)]
    for letters in (spread, spread[::-1], spread[::2] + spread[1::2], [WIDE_LETTERS[0], WIDE_LETTERS[last]] * 7):
        among_others = "z" * 12 + "zzzz".join(letters[:4]) + "z" * 12
        text = f"{'漢' * 21}@{among_others}.{''.join(letters)}.{among_others}"
        assert PATTERN.search(text)
        address.parse(text)


def test_the_patterns_are_portable() -> None:
    for pattern in (address.SCHEMA_PATTERN, address.DOMAIN_SCHEMA_PATTERN):
        assert pattern.startswith("^")
        assert pattern.endswith("$")
        outside_classes = re.sub(r"\[(?:\\.|[^\]\\])*\]", "x", pattern)
        assert not re.search(r"\(\?(?![:!])|[+*?}]\+|\\[AZzpPhd]", outside_classes), "not every dialect has that"
        validator = jsonschema_rs.validator_for({"type": "string", "pattern": pattern})
        assert validator.is_valid("user@example.com") or validator.is_valid("example.com")
        assert not validator.is_valid("user@example.com\n")
        assert not validator.is_valid("user@localhost")
