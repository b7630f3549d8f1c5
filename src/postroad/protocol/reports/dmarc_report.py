"""Parser of DMARC aggregate reports: what a receiver saw in the name of a domain (RFC 9990, RFC 7489 appendix C).

expat parses the XML, piece by piece, so that only rows are kept in memory. A document type is refused where it begins:
there are no entities to expand or to fetch. Both formats and all their variants are read alike: elements are known by
name, in the namespace of the root or in none; others are ignored, and of a name that comes twice, the first counts.

Receivers differ in small ways, so a row with an invalid word is read and one without address, count or From domain is
counted as invalid. A report is a claim of its author: who that is must be known from elsewhere.

Libraries for these reports were compared. parsedmarc 11 brings eleven others and asks DNS; dmarc-report 3.1, of one
author, brings a terminal library, builds the whole tree, takes three times as long, refuses a report for one odd word,
and raises undeclared errors for damaged archives and unknown encodings.

It takes 0.1 seconds for each MB of XML, most of it in Python: a report of more than a hundred rows belongs in a thread.
"""

import functools
import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final
from xml.parsers import expat

import msgspec

from postroad.protocol.dns import dmarc_record
from postroad.protocol.mime import address
from postroad.protocol.reports import bounce_text, report_files

# The largest that receivers are known to send have some 10,000.
MAX_ROWS: Final = 50_000
# A row has some 20, and 4 more for each further signature.
MAX_ELEMENTS: Final = 30 * MAX_ROWS
# Real reports have five, and extensions a few more.
MAX_DEPTH: Final = 16
# A tag, comment or declaration that does not end is parsed again with each piece by old versions of expat.
MAX_TOKEN_BYTES: Final = 4 * report_files.PIECE_BYTES
TEXT_CHARACTERS: Final = 255
# The sum over all rows fits into 64 bits.
MAX_COUNT: Final = 10**12
MAX_SIGNERS: Final = 10
# A day is usual; a receiver that was down may report about some.
MAX_PERIOD_SECONDS: Final = 31 * 86_400
# What expat reads and old systems write. Other names would go to Python's codecs, which raise whatever they like.
_ENCODINGS: Final = frozenset(
    "utf-8 utf-16 utf-16le utf-16be us-ascii iso-8859-1 iso-8859-15 windows-1250 windows-1251 windows-1252".split()
)
# The end of the year 9999.
_MAX_TIME: Final = 253_402_300_799
_MAX_DIGITS: Final = 18
_MAX_PERCENT: Final = 100
_DOMAINS: Final = 10_000

_ROOT: Final = "feedback"
_RECORD: Final = "feedback/record"
_SIGNATURE: Final = f"{_RECORD}/auth_results/dkim"
_SPF: Final = f"{_RECORD}/auth_results/spf"
_REASON: Final = f"{_RECORD}/row/policy_evaluated/reason/type"
_METADATA: Final = "feedback/report_metadata"
_POLICY: Final = "feedback/policy_published"
_OF_REPORT: Final = frozenset(
    f"{_METADATA}/{name}" for name in ("org_name", "email", "report_id", "date_range/begin", "date_range/end")
) | frozenset(f"{_POLICY}/{name}" for name in ("domain", "p", "sp", "adkim", "aspf", "pct", "testing"))
_OF_RECORD: Final = frozenset(
    f"{_RECORD}/{name}"
    for name in (
        "row/source_ip",
        "row/count",
        "row/policy_evaluated/disposition",
        "row/policy_evaluated/dkim",
        "row/policy_evaluated/spf",
        "row/policy_evaluated/reason/type",
        "identifiers/header_from",
        "identifiers/envelope_from",
        "identifiers/envelope_to",
        "auth_results/dkim/domain",
        "auth_results/dkim/result",
        "auth_results/spf/domain",
        "auth_results/spf/result",
    )
)


class Disposition(StrEnum):
    """What the receiver did with messages because of the policy. `pass` of RFC 9990 is NONE: nothing was done."""

    NONE = "none"
    QUARANTINE = "quarantine"
    REJECT = "reject"


class Override(StrEnum):
    """Why a receiver did something else than the policy says (RFC 9990 section 2.1, and two of RFC 7489)."""

    LOCAL_POLICY = "local_policy"
    MAILING_LIST = "mailing_list"
    TRUSTED_FORWARDER = "trusted_forwarder"
    FORWARDED = "forwarded"
    SAMPLED_OUT = "sampled_out"
    POLICY_TEST_MODE = "policy_test_mode"
    OTHER = "other"


class Policy(msgspec.Struct, frozen=True):
    """The record that the receiver found. `p` and `sp` are empty where nothing valid is."""

    domain: str
    p: str
    sp: str
    has_strict_dkim: bool
    has_strict_spf: bool
    percent: int
    is_test: bool


class Row(msgspec.Struct, frozen=True, gc=False):
    """Messages with equal results. Domains are in lower case and A-labels, and empty where the report has no valid one.

    `dkim` and `spf`: whether it passed for a domain that is aligned with the From domain; one of them makes the message
    pass. `signers` are the domains with valid signatures and `spf_domain` the one that passed SPF, aligned or not.
    """

    source: str
    count: int
    disposition: Disposition
    dkim: bool
    spf: bool
    header_from: str
    envelope_from: str
    envelope_to: str
    signers: tuple[str, ...]
    spf_domain: str
    overrides: tuple[Override, ...]

    @property
    def passed(self) -> bool:
        return self.dkim or self.spf


class Report(msgspec.Struct, frozen=True):
    """A report. Times are in seconds since 1970; `organization`, `contact` and `id` are on one line each.

    The id is unique among the reports of an organization. `invalid_rows` counts those that are left out.
    """

    organization: str
    contact: str
    id: str
    begin: int
    end: int
    policy: Policy
    rows: tuple[Row, ...]
    invalid_rows: int


def read(pieces: Iterable[bytes]) -> Report:
    """The report in a file that comes in pieces of at most PIECE_BYTES. Raises ReportError."""
    document = _Document()
    rows: list[Row] = []
    records = 0
    for record in document.records(pieces):
        records += 1
        row = _row(record)
        if row is not None:
            rows.append(row)
    if not rows:
        raise report_files.ReportError("the report has no valid row")
    return _report(document.fields, tuple(rows), invalid_rows=records - len(rows))


class _Record(msgspec.Struct):
    """The texts of a record by their path, and what may come several times."""

    texts: dict[str, str] = msgspec.field(default_factory=dict)
    signers: list[str] = msgspec.field(default_factory=list)
    spf_domain: str = ""
    reasons: list[str] = msgspec.field(default_factory=list)


class _Document:
    """The handlers of expat: `fields` are the texts of the report by their path."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self._record = _Record()
        self._complete: list[_Record] = []
        self._number = 0
        self._elements = 0
        self._namespace = ""
        self._paths: list[str] = []
        self._text: list[str] = []
        self._is_wanted = False
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.XmlDeclHandler = _check_encoding
        parser.StartDoctypeDeclHandler = _refuse_document_type
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        self._parser = parser

    def records(self, pieces: Iterable[bytes]) -> Iterator[_Record]:
        size = 0
        for piece in pieces:
            size += len(piece)
            yield from self._feed(piece, is_last=False)
            if size - self._parser.CurrentByteIndex > MAX_TOKEN_BYTES:
                raise report_files.ReportError("the XML has a tag or comment of more than 256 KiB")
        yield from self._feed(b"", is_last=True)

    def _feed(self, piece: bytes, *, is_last: bool) -> list[_Record]:
        try:
            self._parser.Parse(piece, is_last)
        except expat.ExpatError as error:
            raise report_files.ReportError(f"it is not well-formed XML (line {error.lineno})") from None
        complete, self._complete = self._complete, []
        return complete

    def _start(self, name: str, _attributes: Mapping[str, str]) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise report_files.ReportError("the XML has too many elements")
        if not self._paths:
            self._namespace, _, name = name.rpartition(" ")
            if name != _ROOT:
                raise report_files.ReportError("the XML is not a DMARC report")
            self._paths.append(name)
            return
        if len(self._paths) >= MAX_DEPTH:
            raise report_files.ReportError("the XML is nested too deeply")
        if self._namespace:
            name = name.removeprefix(f"{self._namespace} ")
        path = f"{self._paths[-1]}/{name}"
        self._paths.append(path)
        self._text = []
        self._is_wanted = path in _OF_RECORD or path in _OF_REPORT

    def _add_text(self, text: str) -> None:
        if self._is_wanted and len(self._text) <= TEXT_CHARACTERS:
            self._text.append(text[: TEXT_CHARACTERS + 1])

    def _end(self, _name: str) -> None:
        path = self._paths.pop()
        if self._is_wanted:
            self._keep(path, "".join(self._text).strip())
            self._is_wanted = False
        elif path == _RECORD:
            self._number += 1
            if self._number > MAX_ROWS:
                raise report_files.ReportError("the report has more than 50,000 rows")
            self._complete.append(self._record)
            self._record = _Record()
        elif path == _SIGNATURE:
            domain = self._take_passed(path)
            if domain and len(self._record.signers) < MAX_SIGNERS:
                self._record.signers.append(domain)
        elif path == _SPF:
            self._record.spf_domain = self._record.spf_domain or self._take_passed(path)

    def _keep(self, path: str, text: str) -> None:
        if path in _OF_REPORT:
            self.fields.setdefault(path, text)
        elif path != _REASON:
            self._record.texts.setdefault(path, text)
        elif len(self._record.reasons) < len(Override):
            self._record.reasons.append(text.lower())

    def _take_passed(self, path: str) -> str:
        """The domain of the result that ends here, if it is a pass."""
        texts = self._record.texts
        domain, result = texts.pop(f"{path}/domain", ""), texts.pop(f"{path}/result", "")
        return domain if result.lower() == "pass" else ""


def _check_encoding(_version: str, encoding: str | None, _standalone: int) -> None:
    if encoding is not None and encoding.lower() not in _ENCODINGS:
        raise report_files.ReportError("the XML is in an encoding that is not read")


def _refuse_document_type(*_declaration: object) -> None:
    raise report_files.ReportError("the XML has a document type, which no report needs")


def _row(record: _Record) -> Row | None:
    def text(name: str) -> str:
        return record.texts.get(f"{_RECORD}/{name}", "")

    source, header_from = _source(text("row/source_ip")), _domain(text("identifiers/header_from"))
    count = _number(text("row/count"), most=MAX_COUNT)
    if not (source and header_from and count):
        return None
    return Row(
        source=source,
        count=count,
        disposition=_disposition(text("row/policy_evaluated/disposition").lower()),
        dkim=text("row/policy_evaluated/dkim").lower() == "pass",
        spf=text("row/policy_evaluated/spf").lower() == "pass",
        header_from=header_from,
        envelope_from=_domain(text("identifiers/envelope_from")),
        envelope_to=_domain(text("identifiers/envelope_to")),
        signers=tuple(dict.fromkeys(filter(None, map(_domain, record.signers)))),
        spf_domain=_domain(record.spf_domain),
        overrides=tuple(dict.fromkeys(map(_override, record.reasons))),
    )


def _report(fields: Mapping[str, str], rows: tuple[Row, ...], *, invalid_rows: int) -> Report:
    begin = _number(fields.get(f"{_METADATA}/date_range/begin", ""), most=_MAX_TIME)
    end = _number(fields.get(f"{_METADATA}/date_range/end", ""), most=_MAX_TIME)
    if begin is None or end is None or not 0 <= end - begin <= MAX_PERIOD_SECONDS:
        raise report_files.ReportError("the report is not about a time of at most 31 days")
    report_id = fields.get(f"{_METADATA}/report_id", "")
    # Ids that are cut off could be the same.
    if len(report_id) > TEXT_CHARACTERS or not bounce_text.clean(report_id):
        raise report_files.ReportError("the report has no report_id of at most 255 characters")
    organization = bounce_text.clean(fields.get(f"{_METADATA}/org_name", ""))[:TEXT_CHARACTERS]
    contact = bounce_text.clean(fields.get(f"{_METADATA}/email", ""))[:TEXT_CHARACTERS]
    if not (organization or contact):
        raise report_files.ReportError("the report does not say who wrote it")
    return Report(
        organization=organization or contact,
        contact=contact,
        id=bounce_text.clean(report_id),
        begin=begin,
        end=end,
        policy=_policy(fields),
        rows=rows,
        invalid_rows=invalid_rows,
    )


def _policy(fields: Mapping[str, str]) -> Policy:
    def word(name: str) -> str:
        return fields.get(f"{_POLICY}/{name}", "").lower()

    domain = _domain(word("domain"))
    if not domain:
        raise report_files.ReportError("the report does not say which domain it is about")
    percent = _number(word("pct"), most=_MAX_PERCENT)
    return Policy(
        domain=domain,
        p=word("p") if word("p") in dmarc_record.POLICIES else "",
        sp=word("sp") if word("sp") in dmarc_record.POLICIES else "",
        has_strict_dkim=word("adkim") == "s",
        has_strict_spf=word("aspf") == "s",
        percent=_MAX_PERCENT if percent is None else percent,
        is_test=word("testing") == "y",
    )


def _source(text: str) -> str:
    """The address in its shortest form, that of IPv4 also where it is mapped into IPv6; empty when it is none."""
    try:
        source = ipaddress.ip_address(text)
    except ValueError:
        return ""
    if isinstance(source, ipaddress.IPv6Address):
        if source.scope_id is not None:
            return ""
        source = source.ipv4_mapped or source
    return str(source)


# The few domains of a report come again in every row.
@functools.lru_cache(maxsize=_DOMAINS)
def _domain(text: str) -> str:
    """The domain, also of an address in its place, as some receivers write the envelope sender; empty when invalid."""
    try:
        return address.parse_domain(text[: TEXT_CHARACTERS + 1].rpartition("@")[2].rstrip(".>"))
    except address.AddressError:
        return ""


def _number(text: str, *, most: int) -> int | None:
    """A number that is not above a limit; None when it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        return None
    number = int(text)
    return number if number <= most else None


def _disposition(word: str) -> Disposition:
    return Disposition(word) if word in Disposition.__members__.values() else Disposition.NONE


def _override(word: str) -> Override:
    return Override(word) if word in Override.__members__.values() else Override.OTHER
