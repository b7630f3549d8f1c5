"""TLS reports (RFC 8460): the results of sessions as values, the JSON of a report, and the mail that carries it.

A report covers one UTC day of one recipient domain. The same day and domain always give the same id, so that a report
which is sent again is known as the same one.
"""

import base64
import datetime as dt
import gzip
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

MEDIA_TYPE: Final = "application/tlsrpt+gzip"
_DAY_SECONDS: Final = 86_400
# RFC 2045 section 6.8.
_BASE64_LINE: Final = 76


class FailureType(StrEnum):
    """Why a session failed, or would have failed under the policy (section 4.3)."""

    STARTTLS_NOT_SUPPORTED = "starttls-not-supported"
    CERTIFICATE_HOST_MISMATCH = "certificate-host-mismatch"
    CERTIFICATE_EXPIRED = "certificate-expired"
    CERTIFICATE_NOT_TRUSTED = "certificate-not-trusted"
    VALIDATION_FAILURE = "validation-failure"
    TLSA_INVALID = "tlsa-invalid"
    DNSSEC_INVALID = "dnssec-invalid"
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
