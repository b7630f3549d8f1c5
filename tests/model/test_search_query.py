"""The language of the search box: what each term means, what is refused and where, and that it can be written back."""

import zoneinfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from postroad import errors
from postroad.model.mail import statuses
from postroad.model.search import search_query
from postroad.model.units import times

MESSAGE_ID = "em_" + "0123456789abcdef" + "0" * 12
NOW = 1_800_000_000 * times.SECOND
PIECES = (
    *(
        "to:",
        "from:",
        "status:",
        "outcome:",
        "cause:",
        "code:",
        "provider:",
        "metadata.a:",
        "tag:",
        "source:",
        "mode:",
        "id:",
        "after:",
        "before:",
        "subject:",
        "TO:",
        ":",
        '"',
        '""',
    ),
    *(
        " ",
        "-",
        " OR ",
        "*",
        "\t",
        "\n",
        "\0",
        "\\",
        "%",
        "_",
        "'",
        "@",
        "ada@example.org",
        "Ada <ada@example.org>",
        "ada@bücher.example",
    ),
    *("bounced", "address", "mailbox_full", "550", "5.1.1", "gmail", "@example.org", "ann*", "em_0654c3", "OR"),
    *("failed", "smtp", "2h", "2026-11-01", "2026-11-02T10:00Z", "x" * 60, "É", "İ", "📮", "\ud800", MESSAGE_ID),
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=8).map("".join))


def refused(text: str) -> tuple[str, str]:
    """What is said of a text that is no query, and the part of it that is pointed at."""
    with pytest.raises(search_query.QueryError) as caught:
        search_query.parse(text)
    problem = caught.value
    assert 0 <= problem.start < problem.end <= len(text)
    return problem.message, text[problem.start : problem.end]


def parsed(text: str) -> search_query.Query | search_query.QueryError:
    try:
        return search_query.parse(text)
    except search_query.QueryError as problem:
        return problem


def test_an_empty_text_looks_for_everything() -> None:
    assert search_query.parse("") == search_query.parse(" \t\n ") == search_query.Query()


def test_each_name_fills_its_field() -> None:
    text = (
        f"to:ada@example.org from:Shop@example.com status:failed tag:orders source:smtp mode:test id:{MESSAGE_ID} "
        "after:2026-11-01 before:2h"
    )
    assert search_query.parse(text) == search_query.Query(
        to="ada@example.org",
        sender="Shop@example.com",
        status=statuses.MessageStatus.FAILED,
        tag="orders",
        source=statuses.Source.SMTP,
        mode=statuses.Mode.TEST,
        id=MESSAGE_ID,
        after="2026-11-01",
        before="2h",
    )


def test_names_and_states_are_known_in_any_case() -> None:
    assert search_query.parse("STATUS:Failed") == search_query.Query(status=statuses.MessageStatus.FAILED)


def test_metadata_is_named_by_its_key_in_which_case_matters() -> None:
    assert search_query.parse('Metadata.Order-Id:"10 42:x"') == search_query.Query(metadata="Order-Id:10 42:x")
    assert search_query.format(search_query.Query(metadata="Order-Id:10 42:x")) == 'metadata.Order-Id:"10 42:x"'
    assert search_query.parse("to.order:1042").words == ("to.order:1042",)


def test_bare_words_mean_what_they_look_like() -> None:
    assert search_query.parse("ada@example.org") == search_query.Query(to="ada@example.org")
    assert search_query.parse(MESSAGE_ID) == search_query.Query(id=MESSAGE_ID)
    assert search_query.parse("Second INVOICE 10:30 @home em_12") == search_query.Query(
        words=("second", "invoice", "10:30", "@home", "em_12")
    )


def test_only_ascii_letters_lose_their_case() -> None:
    assert search_query.parse("GRÜSSE").words == ("grÜsse",)


def test_a_word_that_is_there_twice_counts_once() -> None:
    assert search_query.parse("order Order ORDER").words == ("order",)


def test_quotes_hold_blanks_and_take_away_every_meaning() -> None:
    assert search_query.parse('tag:"black friday"') == search_query.Query(tag="black friday")
    assert search_query.parse('to:"Ada L. <ada@example.org>"') == search_query.Query(to="ada@example.org")
    assert search_query.parse(f'"to:ada@example.org" "ada@example.org" "{MESSAGE_ID}"').words == (
        "to:ada@example.org",
        "ada@example.org",
        MESSAGE_ID,
    )
    assert search_query.parse('"say ""hi"""').words == ('say "hi"',)


def test_quotes_and_patterns_within_a_word_are_plain_text() -> None:
    assert search_query.parse("""5"disc 50%_off \\ ' 📮""").words == ('5"disc', "50%_off", "\\", "'", "📮")


def test_a_time_is_a_day_a_time_or_how_long_ago() -> None:
    day = times.parse("2026-11-01T00:00:00Z")
    assert search_query.moment("2026-11-01", now=NOW) == day
    assert search_query.moment("2026-11-01T10:00", now=NOW) == day + 10 * times.HOUR
    assert search_query.moment("2026-11-01T10:00Z", now=NOW) == day + 10 * times.HOUR
    assert search_query.moment("2026-11-01T10:00+02:00", now=NOW) == day + 8 * times.HOUR
    assert search_query.moment("2026-11-01T10:00:30.5Z", now=NOW) == day + 10 * times.HOUR + 30_500_000
    kolkata = zoneinfo.ZoneInfo("Asia/Kolkata")
    assert search_query.moment("2026-11-01", now=NOW, zone=kolkata) == day - 11 * times.HOUR // 2
    assert search_query.moment("2026-11-01t10:00:30", now=NOW, zone=kolkata) == day + 9 * times.HOUR // 2 + 30_000_000
    assert search_query.moment("2026-11-01T10:00Z", now=NOW, zone=kolkata) == day + 10 * times.HOUR
    assert search_query.moment("2h", now=NOW, zone=kolkata) == NOW - 2 * times.HOUR
    assert search_query.moment("30m", now=NOW) == NOW - times.HOUR // 2
    assert search_query.moment("2h", now=NOW) == NOW - 2 * times.HOUR
    assert search_query.moment("3d", now=NOW) == NOW - 3 * times.DAY
    assert search_query.moment("1w", now=NOW) == NOW - 7 * times.DAY


def test_a_span_before_the_epoch_begins_at_the_epoch() -> None:
    assert search_query.moment("9" * 400 + "w", now=NOW) == 0


@pytest.mark.parametrize(
    "text, said, place",
    [
        ("source:api order source:smtp", "source: is given twice; remove one, or write OR", "source:smtp"),
        ("after:1d after:2d", "after: is given twice; remove one", "after:2d"),
        ("to:ada@example.org bob@example.org", "to: is given twice; remove one, or write OR", "bob@example.org"),
        ("order stauts:failed", "unknown filter stauts: (did you mean status:?)", "stauts:failed"),
        ("subject:order", "put it in double quotes", "subject:order"),
        ("zzz:", "unknown filter zzz:", "zzz:"),
        ("x tag: y", "tag: needs a value", "tag:"),
        ("x metadata.order: y", "metadata: needs a value", "metadata.order:"),
        (
            "metadata:x",
            "metadata: give a key and its value, such as order:1042 (metadata.order:1042 in a search)",
            "metadata:x",
        ),
        (f"metadata.{'a' * 41}:x", "metadata: give a key and its value", f"metadata.{'a' * 41}:x"),
        ("status:lost", "status: must be one of queued, delivered, partial, failed", "status:lost"),
        ("status:bouncd", "unsubscribed (did you mean bounced?)", "status:bouncd"),
        ("outcome:partial", "outcome: must be one of queued, deferred, delivered, bounced", "outcome:partial"),
        ("x -cause:mailbox", "cause: must be one of address, content, policy, reputation", "-cause:mailbox"),
        ("cause:mailboxfull", "or a reason such as mailbox_full (did you mean mailbox_full?)", "cause:mailboxfull"),
        ("code:55", "code: must be a reply code like 550 or an enhanced code like 5.1.1", "code:55"),
        ("code:3.1.1", "code: must be a reply code", "code:3.1.1"),
        ("provider:gmial", "provider: must be one of google, microsoft, yahoo, apple, others", "provider:gmial"),
        ("to:@gm*", "to: an asterisk stands for the rest of an address, as in ann*", "to:@gm*"),
        ("to:a*b*", "to: an asterisk stands for the rest of an address", "to:a*b*"),
        ("from:*", "from: an asterisk stands for the rest of an address", "from:*"),
        ("to:@localhost", "to: 'localhost' is not a domain name", "to:@localhost"),
        ("to:ann", "A domain is written @example.org, the beginning of addresses ann*", "to:ann"),
        ("id:em_xyz*", "id: is not a message id", "id:em_xyz*"),
        ("OR invoice", "OR needs a term before and after it", "OR"),
        ("invoice OR", "OR needs a term before and after it", "OR"),
        ("a OR OR b", "OR needs a term before and after it", "OR"),
        ("1 OR 2 OR 3 OR 4 OR 5 OR tag:x", "OR joins at most 5 terms", "tag:x"),
        ("tag:x OR after:1d", "after: cannot be excluded with - or joined with OR", "after:1d"),
        ("-mode:test", "mode: cannot be excluded with - or joined with OR", "-mode:test"),
        ("-1 2 OR 3 4 5 6", "at most 5 words", "6"),
        (" ".join(f"tag:{number}" for number in range(16)), "at most 15 terms", "tag:15"),
        ("source:web", "source: must be one of api, smtp, test", "source:web"),
        ("mode:both", "mode: must be one of live, test", "mode:both"),
        ("to:nobody", "to: 'nobody' is not an email address", "to:nobody"),
        ("id:em_1", "id: is not a message id", "id:em_1"),
        ("id:acc_" + "0" * 28, "id: is not a message id", "id:acc_" + "0" * 28),
        ("after:yesterday", "after: must be a date like", "after:yesterday"),
        ("before:2026-02-30", "before: must be a date like", "before:2026-02-30"),
        ("after:2y", "after: must be a date like", "after:2y"),
        ("tag:" + "x" * 129, "tag: must be 1 to 128 characters", "tag:" + "x" * 129),
        ('tag:"a\nb"', "tag: must be 1 to 128 characters", 'tag:"a\nb"'),
        ('order "second inv', "this double quote is not closed", '"second inv'),
        ('tag:"a""', "this double quote is not closed", '"a""'),
        ('order "" x', "the double quotes are empty", '""'),
        ('tag:" "', "tag: needs a value", 'tag:" "'),
        ('"a"b', "a space must follow the closing double quote", '"a"b'),
        ("a\0b", "remove the invisible character U+0000", "\0"),
        ("a \u202eb", "remove the invisible character U+202E", "\u202e"),
        ("a \ud800", "remove the invisible character U+D800", "\ud800"),
        ("1 2 3 4 5 6", "at most 5 words", "6"),
        ("x" * 501, "at most 500 characters", "x"),
    ],
)
def test_what_is_no_query_is_refused_with_a_sentence_and_its_place(text: str, said: str, place: str) -> None:
    message, pointed_at = refused(text)
    assert message.startswith("search: ")
    assert said in message
    assert pointed_at == place


def terms(text: str) -> list[list[tuple[str | None, str, bool]]]:
    clauses = search_query.parse(text).clauses()
    return [[(term.name, term.value, term.is_negated) for term in clause] for clause in clauses]


def test_an_address_may_be_a_domain_or_the_beginning_of_addresses() -> None:
    for text, kept in (
        ("to:@Gmail.com", "@gmail.com"),
        ("to:gmail.com", "@gmail.com"),
        ("to:@bücher.example", "@xn--bcher-kva.example"),
        ("to:Ann*", "ann*"),
        ("to:ann@ex*", "ann@ex*"),
        ("to:ann*@example.org", "ann*@example.org"),
    ):
        assert search_query.parse(text) == search_query.Query(to=kept)
        assert search_query.parse(text.replace("to:", "from:")) == search_query.Query(sender=kept)


def test_the_beginning_of_a_message_id_is_enough() -> None:
    assert search_query.parse("id:em_0654c3*") == search_query.Query(id="em_0654c3*")
    assert search_query.parse("em_0654c3") == search_query.Query(id="em_0654c3*")
    assert search_query.parse("id:em_*") == search_query.Query(id="em_*")
    assert search_query.parse('em_0654c "em_0654c3"').words == ("em_0654c", "em_0654c3")


def test_a_provider_has_the_names_that_people_give_it() -> None:
    assert search_query.parse("provider:Gmail") == search_query.Query(provider="google")
    assert search_query.parse("provider:upstream:relay") == search_query.Query(provider="upstream:relay")


def test_a_hyphen_excludes_and_or_joins_the_terms_beside_it() -> None:
    assert terms('invoice -tag:a -"second reminder" -to:@gmail.com') == [
        [(None, "invoice", False)],
        [("tag", "a", True)],
        [(None, "second reminder", True)],
        [("to", "@gmail.com", True)],
    ]
    assert terms("source:api status:bounced OR -status:expired OR ann@example.org Tag:x OR invoice") == [
        [("source", "api", False)],
        [("status", "bounced", False), ("status", "expired", True), ("to", "ann@example.org", False)],
        [("tag", "x", False), (None, "invoice", False)],
    ]


def test_a_hyphen_and_or_are_words_where_they_cannot_be_more() -> None:
    assert search_query.parse('- -- "-x" or "OR" well-known').words == ("-", "--", "-x", "or", "well-known")
    assert search_query.format(search_query.parse('-- "-x" or')) == '"--" "-x" or'


def test_what_can_be_true_more_than_once_can_be_written_more_than_once() -> None:
    assert terms("tag:a tag:b tag:a metadata.x:1 metadata.y:2 code:550 code:5.1.1") == [
        [("code", "550", False)],
        [("tag", "a", False)],
        [("metadata", "x:1", False)],
        [("tag", "b", False)],
        [("metadata", "y:2", False)],
        [("code", "5.1.1", False)],
    ]


@pytest.mark.parametrize(
    "text, suggested",
    [
        (
            "invoice gmail.com status:bounced",
            ["to:@gmail.com status:bounced invoice", "to:invoice* status:bounced gmail.com"],
        ),
        ("ada.lovelace", ["to:@ada.lovelace", "to:ada.lovelace*"]),
        ("ada", ["to:ada*"]),
        ("10.50", ["to:10.50*"]),
        ('"two words" ada', ['to:ada* "two words"']),
        ("to:ann* gmail.com", []),
        ("to:@gmail.com", []),
        ("-gmail.com", []),
        ("", []),
    ],
)
def test_a_word_is_suggested_as_the_recipients(text: str, suggested: list[str]) -> None:
    assert [search_query.format(one) for one in search_query.suggestions(search_query.parse(text))] == suggested


def test_a_refusal_is_one_that_every_listener_can_answer() -> None:
    assert issubclass(search_query.QueryError, errors.InvalidRequest)


def test_every_example_of_the_help_is_a_query_of_its_own_name() -> None:
    for name, _, text in search_query.HELP:
        query = search_query.parse(text)
        assert query.words if name == "words" else text.startswith(name) or f" {name} " in text
        assert search_query.parse(search_query.format(query)) == query
    names = {name.removesuffix(":") for name, _, _ in search_query.HELP}
    assert names == {
        "to",
        "from",
        "status",
        "outcome",
        "cause",
        "code",
        "provider",
        "tag",
        "metadata.order",
        "source",
        "mode",
        "id",
        "after",
        "before",
        "words",
        "-",
        "OR",
    }


@given(TEXTS)
@example('"' * 7)
@example('tag:"a b" "to:x" 5"')
@example(f'"{MESSAGE_ID.upper()}"')
@example("İ\u0323@example.org")
@example('-tag:a OR -"x y" OR to:İ* tag:b tag:a tag:a')
def test_any_text_is_a_query_that_can_be_written_back_or_is_refused_with_a_place(text: str) -> None:
    query = parsed(text)
    if isinstance(query, search_query.Query):
        assert search_query.parse(search_query.format(query)) == query
    else:
        assert 0 <= query.start < query.end <= len(text)


def test_a_search_is_broader_without_each_of_its_terms() -> None:
    query = search_query.parse("to:@gmail.com after:2d before:1d tag:a tag:b invoice due -code:550")
    assert {text: search_query.format(rest) for text, rest in search_query.broader(query)} == {
        "to:@gmail.com": "tag:a after:2d before:1d invoice due tag:b -code:550",
        "tag:a": "to:@gmail.com after:2d before:1d invoice due tag:b -code:550",
        "after:2d before:1d": "to:@gmail.com tag:a invoice due tag:b -code:550",
        "invoice": "to:@gmail.com tag:a after:2d before:1d due tag:b -code:550",
        "due": "to:@gmail.com tag:a after:2d before:1d invoice tag:b -code:550",
        "tag:b": "to:@gmail.com tag:a after:2d before:1d invoice due -code:550",
        "-code:550": "to:@gmail.com tag:a after:2d before:1d invoice due tag:b",
    }
    assert list(search_query.broader(search_query.Query())) == []
