"""TLS reports (RFC 8460): the results of sessions as values, the JSON of a report, and the mail that carries it.

A report of ours covers one UTC day of one recipient domain. The same day and domain always give the same id, so that a
report which is sent again is known as the same one. A report of others is a claim of its author: it is read with
bounds, what is missing beside the counts is empty, and a failure of an unknown type is VALIDATION_FAILURE.
"""

import base64
import datetime as dt
import gzip
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from postroad.protocol.reports import bounce_text, report_files
from postroad.protocol.text import strict_json

MEDIA_TYPE: Final = "application/tlsrpt+gzip"
_DAY_SECONDS: Final = 86_400
# RFC 2045 section 6.8.
_BASE64_LINE: Final = 76
# More JSON than the values that are read can fill honestly.
MAX_BYTES: Final = 8 * 1024 * 1024
TEXT_CHARACTERS: Final = 255
# Policies and hosts of one domain; a TLSA record set or MTA-STS policy has some five.
MAX_LINES: Final = 50
MAX_PERIOD_SECONDS: Final = 31 * _DAY_SECONDS
# The sum over all values fits into 64 bits.
MAX_SESSIONS: Final = 10**12


class FailureType(StrEnum):
    """Why a session failed, or would have failed under the policy (section 4.3)."""

    STARTTLS_NOT_SUPPORTED = "starttls-not-supported"
    CERTIFICATE_HOST_MISMATCH = "certificate-host-mismatch"
    CERTIFICATE_EXPIRED = "certificate-expired"
    CERTIFICATE_NOT_TRUSTED = "certificate-not-trusted"
    VALIDATION_FAILURE = "validation-failure"
    TLSA_INVALID = "tlsa-invalid"
    DNSSEC_INVALID = "dnssec-invalid"
    DANE_REQUIRED = "dane-required"
    STS_POLICY_FETCH_ERROR = "sts-policy-fetch-error"
    STS_POLICY_INVALID = "sts-policy-invalid"
    STS_WEBPKI_INVALID = "sts-webpki-invalid"


class PolicyType(StrEnum):
    """Which kind of policy applied (section 4.4)."""

    STS = "sts"
    TLSA = "tlsa"
    NONE = "no-policy-found"


class Policy(msgspec.Struct, frozen=True):
    """A policy that applied. `domain` is the one that publishes it: for TLSA records that of the mail host."""

    type: PolicyType
    domain: str
    lines: tuple[str, ...] = ()
    mx_hosts: tuple[str, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """The result of a session. A success, which has no `failure`, is counted without its hosts."""

    policy: Policy
    failure: FailureType | None = None
    sending_address: str = ""
    mx_host: str = ""
    receiving_address: str = ""


class Report(msgspec.Struct, frozen=True):
    """A report. `day` is in days since 1970; `submitter` is the domain of `contact`, the sender of reports."""

    organization: str
    contact: str
    domain: str
    day: int
    sessions: Mapping[Result, int]

    @property
    def submitter(self) -> str:
        return self.contact.rpartition("@")[2]

    @property
    def id(self) -> str:
        """Unique for the day, the domain and the submitter."""
        return f"{_date(self.day)}.{self.domain}@{self.submitter}"

    @property
    def file_name(self) -> str:
        """The name of section 5.1."""
        start = self.day * _DAY_SECONDS
        return f"{self.submitter}!{self.domain}!{start}!{start + _DAY_SECONDS - 1}.json.gz"

    def content(self) -> bytes:
        """The JSON of section 4.4, compressed. The same report gives the same bytes."""
        return gzip.compress(self.json(), mtime=0)

    def json(self) -> bytes:
        date = _date(self.day)
        policies: dict[Policy, dict[Result, int]] = {}
        for result, sessions in self.sessions.items():
            policies.setdefault(result.policy, {})[result] = sessions
        return msgspec.json.encode(
            {
                "organization-name": self.organization,
                "date-range": {"start-datetime": f"{date}T00:00:00Z", "end-datetime": f"{date}T23:59:59Z"},
                "contact-info": self.contact,
                "report-id": self.id,
                "policies": [
                    {"policy": _policy(policy), **_results(results)}
                    for policy, results in sorted(policies.items(), key=lambda item: msgspec.structs.astuple(item[0]))
                ],
            }
        )

    def mail(self, recipient: str, *, key: str) -> bytes:
        """The message of section 5.3, in ASCII. `key` is its idempotency key."""
        # Neither text nor base64 contains such a line.
        boundary = "=_tls_report"
        encoded = base64.b64encode(self.content()).decode("ascii")
        lines: Iterable[str] = (
            f"From: <{self.contact}>",
            f"To: <{recipient}>",
            f"Subject: Report Domain: {self.domain} Submitter: {self.submitter}",
            f" Report-ID: <{self.id}>",
            f"TLS-Report-Domain: {self.domain}",
            f"TLS-Report-Submitter: {self.submitter}",
            # RFC 8689 section 5: problems with TLS must not keep the report of them away.
            "TLS-Required: No",
            f"Idempotency-Key: {key}",
            "MIME-Version: 1.0",
            f'Content-Type: multipart/report; report-type="tlsrpt"; boundary="{boundary}"',
            "",
            f"--{boundary}",
            "Content-Type: text/plain; charset=us-ascii",
            "",
            f"This is an aggregate TLS report (RFC 8460) from {self.submitter}",
            f"about mail to {self.domain} on {_date(self.day)} (UTC).",
            "",
            f"--{boundary}",
            f"Content-Type: {MEDIA_TYPE}",
            "Content-Transfer-Encoding: base64",
            f'Content-Disposition: attachment; filename="{self.file_name}"',
            "",
            *(encoded[at : at + _BASE64_LINE] for at in range(0, len(encoded), _BASE64_LINE)),
            f"--{boundary}--",
            "",
        )
        return "\r\n".join(lines).encode("ascii")


class ReceivedReport(msgspec.Struct, frozen=True):
    """A report of others. Times are in seconds since 1970; texts are on one line each.

    The id is unique among the reports of an organization. Failures of a summary without details have no hosts.
    """

    organization: str
    contact: str
    id: str
    begin: int
    end: int
    sessions: Mapping[Result, int]


class _Range(msgspec.Struct, rename="kebab"):
    start_datetime: str
    end_datetime: str


class _PolicyText(msgspec.Struct, rename="kebab"):
    policy_type: str
    policy_domain: str
    # Some write one text where the RFC has a list.
    policy_string: list[str] | str | None = None
    mx_host: list[str] | str | None = None


class _Summary(msgspec.Struct, rename="kebab"):
    total_successful_session_count: int
    total_failure_session_count: int


class _Details(msgspec.Struct, rename="kebab"):
    result_type: str
    failed_session_count: int
    sending_mta_ip: str | None = None
    receiving_mx_hostname: str | None = None
    receiving_ip: str | None = None


class _PolicyResults(msgspec.Struct, rename="kebab"):
    policy: _PolicyText
    summary: _Summary
    failure_details: list[_Details] | None = None


class _ReportText(msgspec.Struct, rename="kebab"):
    organization_name: str
    date_range: _Range
    report_id: str
    policies: list[_PolicyResults]
    contact_info: str | None = None


def read(pieces: Iterable[bytes]) -> ReceivedReport:
    """The report in a file that comes in pieces. Raises ReportError."""
    report = _report_text(pieces)
    begin, end = _seconds(report.date_range.start_datetime), _seconds(report.date_range.end_datetime)
    if begin is None or end is None or not 0 <= end - begin <= MAX_PERIOD_SECONDS:
        raise report_files.ReportError("the report is not about a time of at most 31 days")
    organization, report_id = _line(report.organization_name), _line(report.report_id)
    # Ids that are cut off could be the same.
    if not report_id or len(report.report_id) > TEXT_CHARACTERS:
        raise report_files.ReportError("the report has no report-id of at most 255 characters")
    if not organization:
        raise report_files.ReportError("the report does not say who wrote it")
    sessions: Counter[Result] = Counter()
    for result, count in itertools.chain.from_iterable(map(_sessions, report.policies)):
        if not 0 <= count <= MAX_SESSIONS:
            raise report_files.ReportError("a number of sessions is out of range")
        sessions[result] += count
    sessions = +sessions
    if not sessions:
        raise report_files.ReportError("the report counts no session")
    return ReceivedReport(organization, _line(report.contact_info or ""), report_id, begin, end, sessions)


def _report_text(pieces: Iterable[bytes]) -> _ReportText:
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > MAX_BYTES:
            raise report_files.ReportError("the report has more than 8 MiB of JSON")
    try:
        return msgspec.convert(strict_json.read(bytes(content)), _ReportText, strict=False)
    except strict_json.JsonError:
        raise report_files.ReportError("it is not valid JSON") from None
    except msgspec.ValidationError:
        raise report_files.ReportError("the JSON is not a TLS report") from None


def _sessions(results: _PolicyResults) -> Iterator[tuple[Result, int]]:
    kind = results.policy.policy_type
    policy = Policy(
        PolicyType(kind) if kind in PolicyType.__members__.values() else PolicyType.NONE,
        _line(results.policy.policy_domain).lower().rstrip("."),
        _lines(results.policy.policy_string),
        _lines(results.policy.mx_host),
    )
    yield Result(policy), results.summary.total_successful_session_count
    unexplained = results.summary.total_failure_session_count
    for details in results.failure_details or ():
        unexplained -= details.failed_session_count
        kind = details.result_type
        yield (
            Result(
                policy,
                FailureType(kind) if kind in FailureType.__members__.values() else FailureType.VALIDATION_FAILURE,
                _line(details.sending_mta_ip or ""),
                _line(details.receiving_mx_hostname or ""),
                _line(details.receiving_ip or ""),
            ),
            details.failed_session_count,
        )
    # Details are optional, and may be cut off.
    yield Result(policy, FailureType.VALIDATION_FAILURE), max(unexplained, 0)


def _lines(texts: list[str] | str | None) -> tuple[str, ...]:
    given = [texts] if isinstance(texts, str) else texts or []
    return tuple(_line(text) for text in itertools.islice(given, MAX_LINES))


def _line(text: str) -> str:
    return bounce_text.clean(text)[:TEXT_CHARACTERS]


def _seconds(text: str) -> int | None:
    """A time of RFC 3339 in seconds since 1970, in UTC where it does not say; None when it is none."""
    try:
        time = dt.datetime.fromisoformat(text[:TEXT_CHARACTERS])
        return int((time if time.tzinfo else time.replace(tzinfo=dt.UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def _policy(policy: Policy) -> dict[str, Any]:
    found: dict[str, Any] = {"policy-type": policy.type}
    if policy.lines:
        found["policy-string"] = policy.lines
    found["policy-domain"] = policy.domain
    if policy.mx_hosts:
        found["mx-host"] = policy.mx_hosts
    return found


def _results(results: Mapping[Result, int]) -> dict[str, Any]:
    """The summary of a policy and its failures, the most frequent first."""
    failures = {result: sessions for result, sessions in results.items() if result.failure is not None}
    failed = sum(failures.values())
    found: dict[str, Any] = {
        "summary": {
            "total-successful-session-count": sum(results.values()) - failed,
            "total-failure-session-count": failed,
        }
    }
    if failures:
        ordered = sorted(failures.items(), key=lambda item: (-item[1], msgspec.structs.astuple(item[0])[1:]))
        found["failure-details"] = [_failure(result, sessions) for result, sessions in ordered]
    return found


def _failure(result: Result, sessions: int) -> dict[str, Any]:
    known = {
        "result-type": result.failure,
        "sending-mta-ip": result.sending_address,
        "receiving-mx-hostname": result.mx_host,
        "receiving-ip": result.receiving_address,
    }
    return {**{name: value for name, value in known.items() if value}, "failed-session-count": sessions}


def _date(day: int) -> str:
    return (dt.date(1970, 1, 1) + dt.timedelta(days=day)).isoformat()
