"""SPF's records: read as strictly as receivers read them, and merged without losing what stands there."""

import contextlib

import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.dns import spf_record

WANTED = "include:spf.example.net"
WORDS = [
    "a",
    "a/24",
    "mx:example.org//64",
    "-ip4:192.0.2.0/24",
    "ip6:2001:db8::1",
    "ip4:300.1.1.1",
    "include:a.example",
    "~all",
    "-all",
    "redirect=b.example",
    "exp=c.example",
    "exists:%{i}.d.example",
    "ptr",
    "nonsense",
    "?include:spf.example.net",
    WANTED,
]


def test_terms_are_read_in_their_order_up_to_the_end_of_the_record() -> None:
    record = spf_record.parse(
        "V=SPF1  a MX:Mail.Example.ORG. -ip4:192.0.2.1/24 ip6:2001:db8::/32 ~all include:late.example"
    )
    assert [(term.qualifier, term.name, term.value) for term in record.mechanisms] == [
        ("+", "a", ""),
        ("+", "mx", "mail.example.org"),
        ("-", "ip4", "192.0.2.0/24"),
        ("+", "ip6", "2001:db8::/32"),
        ("~", "all", ""),
    ]
    assert record.redirect is None


@pytest.mark.parametrize(
    "word, value, lengths",
    [
        ("mx", "", (32, 128)),
        ("mx/24", "", (24, 128)),
        ("a:Mail.example//64", "mail.example", (32, 64)),
        ("a:mail.example/0//0", "mail.example", (0, 0)),
    ],
)
def test_lengths_are_no_part_of_the_name(word: str, value: str, lengths: tuple[int, int]) -> None:
    term = spf_record.parse_term(word)
    assert (term.value, term.lengths, term.written) == (value, lengths, word)


def test_every_mechanism_that_asks_dns_is_known() -> None:
    words = ["include:a.example", "a", "mx", "ptr", "exists:%{i}.d.example"]
    assert [spf_record.parse_term(word).name for word in words] == ["include", "a", "mx", "ptr", "exists"]


def test_hosts_allow_no_network_where_none_is_wanted() -> None:
    term = spf_record.parse_term("a:mail.example")
    assert not spf_record.allows_network(term, ["192.0.2.1"], spf_record.parse_term(WANTED))


def test_a_record_goes_on_in_another_unless_it_has_an_end() -> None:
    assert spf_record.parse("v=spf1 redirect=Other.example").redirect == "other.example"
    assert spf_record.parse("v=spf1 redirect=other.example -all").redirect is None
    assert spf_record.parse("v=spf1") == spf_record.Record((), None)


def test_the_case_of_macros_is_kept() -> None:
    assert spf_record.parse_term("a:%{L}.Example.com").value == "%{L}.Example.com"
    assert spf_record.parse_term("a:Mail.Example.com.").value == "mail.example.com"


def test_what_has_no_meaning_to_anyone_is_no_mistake() -> None:
    assert spf_record.parse("v=spf1 future=%{d} exp=why.example -all").mechanisms[0].name == "all"


@pytest.mark.parametrize(
    "text, reason",
    [
        ("v=spf10 -all", "does not begin"),
        ("v=spf1 includes:a.example", "'includes:a.example' is not a valid SPF term"),
        ("v=spf1 include:", "'include:' is not a valid SPF term"),
        ("v=spf1 include", "has no domain"),
        ("v=spf1 redirect=", "has no domain"),
        ("v=spf1 exp=%{d", "has no domain"),
        ("v=spf1 future=%{x}", "not a valid SPF term"),
        ("v=spf1 a:localhost", "has no valid domain"),
        ("v=spf1 include:%{c}.example.com", "has no valid domain"),
        ("v=spf1 ip4:192.0.2.0/032", "not a valid SPF term"),
        ("v=spf1 redirect=a.example redirect=b.example", "twice"),
        ("v=spf1 ip4:300.0.0.1", "an address of the wrong family"),
        ("v=spf1 ip4:192.0.2.0/33", "an address of the wrong family"),
        ("v=spf1 ip4:2001:db8::1", "an address of the wrong family"),
        ("v=spf1 ip4:192.0.2.1,192.0.2.2", "not a valid SPF term"),
        ("v=spf1 a/33", "a prefix longer than an address"),
        ("v=spf1 mx:a.example//129", "a prefix longer than an address"),
        ("v=spf1 all:x", "an argument that all does not allow"),
        ("v=spf1 include:a.example/24", "an argument that include does not allow"),
        ("v=spf1 inclüde:a.example", "not a valid SPF term"),
        ("v=spf1 \ta", "not a valid SPF term"),
        ("v=spf1 " + "a " * 10_000, "longer"),
    ],
)
def test_one_mistake_spoils_a_record_and_is_named(text: str, reason: str) -> None:
    with pytest.raises(spf_record.SpfError, match=reason):
        spf_record.parse(text)


def test_only_one_version_is_a_record() -> None:
    assert all(spf_record.is_spf(text) for text in ("v=spf1", "v=spf1 -all", "V=SPF1 ~all"))
    assert not any(spf_record.is_spf(text) for text in ("", "v=spf2", "v=spf1;", " v=spf1", "spf2.0/pra", "v=spf1\n"))


@pytest.mark.parametrize(
    "term, wanted",
    [
        ("ip4:192.0.2.0/24", "ip4:192.0.2.7"),
        ("ip6:2001:db8::/32", "ip6:2001:db8::25"),
        ("include:SPF.example.net.", WANTED),
        ("-include:spf.example.net", WANTED),
        ("a:mail.example.net", "a:mail.example.net"),
        ("a:mail.example.net/24", "a:mail.example.net"),
        ("a:mail.example.net/24//64", "a:mail.example.net/28//64"),
    ],
)
def test_a_term_covers_what_it_is_and_what_lies_in_it(term: str, wanted: str) -> None:
    assert spf_record.covers(spf_record.parse_term(term), spf_record.parse_term(wanted))


@pytest.mark.parametrize(
    "term, wanted",
    [
        ("ip4:192.0.2.7", "ip4:192.0.2.0/24"),
        ("ip6:::/0", "ip4:192.0.2.7"),
        ("include:other.example", WANTED),
        ("redirect=spf.example.net", WANTED),
        ("a:mail.example.net", "a:mail.example.net/24"),
        ("a:mail.example.net/24", "a:mail.example.net//64"),
    ],
)
def test_a_term_covers_nothing_else(term: str, wanted: str) -> None:
    assert not spf_record.covers(spf_record.parse_term(term), spf_record.parse_term(wanted))


@pytest.mark.parametrize(
    "texts, merged",
    [
        (["v=spf1 include:_spf.google.com ~all"], f"v=spf1 include:_spf.google.com {WANTED} ~all"),
        (["v=spf1 -all"], f"v=spf1 {WANTED} -all"),
        (["v=spf1 mx redirect=a.example"], f"v=spf1 mx {WANTED} redirect=a.example"),
        (["v=spf1 mx"], f"v=spf1 mx {WANTED}"),
        (["v=spf1 -all " + WANTED], f"v=spf1 {WANTED} -all"),
        ([f"v=spf1 -{WANTED} mx -all"], f"v=spf1 mx {WANTED} -all"),
        (["v=spf1 a -all", "v=spf1 mx a ~all"], f"v=spf1 a mx {WANTED} -all"),
        (["v=spf1 nonsense a -all"], f"v=spf1 a {WANTED} -all"),
        ([f"v=spf1 {WANTED} -all"], f"v=spf1 {WANTED} -all"),
    ],
)
def test_merging_keeps_what_is_there_and_puts_the_term_where_it_is_read(texts: list[str], merged: str) -> None:
    assert spf_record.merged(texts, [WANTED]) == merged


def test_a_domain_without_a_record_gets_one_of_its_own() -> None:
    assert spf_record.new_record(["ip4:192.0.2.7", "a:b.example"]) == "v=spf1 ip4:192.0.2.7 a:b.example ~all"


@hypothesis.given(
    strategies.lists(strategies.lists(strategies.sampled_from(WORDS), max_size=8), min_size=1, max_size=3)
)
def test_a_merged_record_can_be_read_and_allows_the_term_before_it_ends(records: list[list[str]]) -> None:
    merged = spf_record.merged([" ".join(["v=spf1", *words]) for words in records], [WANTED])
    wanted = spf_record.parse_term(WANTED)
    assert any(
        spf_record.covers(term, wanted) and term.qualifier == "+" for term in spf_record.parse(merged).mechanisms
    )


@hypothesis.given(strategies.text(max_size=80).map(lambda rest: f"v=spf1 {rest}"))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(spf_record.SpfError):
        assert all(term.qualifier for term in spf_record.parse(text).mechanisms)
    assert spf_record.is_spf(spf_record.merged([text], [WANTED]))
