"""The language of the search box, from any octets.

Holds: nothing but `QueryError` is raised, and it points into the text; what `format` writes is read as the same query,
and written the same again; every moment is a time.
"""

from typing import Final

from postroad.model.search import search_query
from tests.fuzz import target

NOW: Final = 1_800_000_000_000_000


def check(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    try:
        query = search_query.parse(text)
    except search_query.QueryError as refusal:
        _check_refusal(refusal, text)
        return
    written = search_query.format(query)
    assert search_query.parse(written) == query
    assert search_query.format(search_query.parse(written)) == written
    assert len(query.words) <= search_query.MAX_WORDS
    assert sum(map(len, query.clauses())) <= search_query.MAX_TERMS
    for moment in (query.after, query.before):
        assert moment is None or search_query.moment(moment, now=NOW) >= 0


def _check_refusal(refusal: search_query.QueryError, text: str) -> None:
    assert 0 <= refusal.start <= refusal.end <= len(text)
    assert target.is_sayable(refusal.message)


TARGET: Final = target.Target(
    name="query",
    open=target.plain(check),
    watches=(
        "model/search/search_query.py",
        "model/search/search_values.py",
        "model/units/times.py",
        "model/mail/limits.py",
        "protocol/mime/address",
    ),
    seeds=(
        b"to:ada@example.org status:failed after:2d invoice",
        b'from:"Shop <shop@example.com>" tag:"black friday" "second ""reminder"""',
        b"id:em_0654c3a1f2b4c80123456789abcd source:smtp before:2026-11-02T10:00Z",
        b"em_0654c3a1f2b4c80123456789abcd",
        b"after:0000-01-01 before:9999-12-31T23:59:60+23:59",
        b'a b c d e f "',
        b"subjet:x",
        b"after:99999999999w",
        b'to:@gmail.com status:bounced OR status:expired -tag:a -"b c" provider:gmail code:5.1.1 cause:mailbox_full',
    ),
    max_octets=600,
    steps=(20_000, 250),
)
