"""Aggregate reports as five receivers write them, made anew from a seed, with what they count.

The structure is that of RFC 9990, RFC 7489 appendix C and public samples: order and choice of elements, declarations,
namespaces, packing, and the mail around the file. Names and figures are made up.
"""

import base64
import datetime as dt
import gzip
import io
import random
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

DOMAIN = "example.com"
# 2026-01-01.
FIRST_DAY = 20_454
DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Record:
    """What a receiver saw of one source."""

    source: str
    count: int
    dkim: bool
    spf: bool
    disposition: str = "none"
    header_from: str = DOMAIN


@dataclass(frozen=True, slots=True)
class Sample:
    """A report in its mail, which comes from `domain`."""

    organization: str
    domain: str
    day: int
    records: Sequence[Record]
    mail: bytes

    @property
    def messages(self) -> int:
        return sum(record.count for record in self.records)

    @property
    def passed(self) -> int:
        return sum(record.count for record in self.records if record.dkim or record.spf)


def make(count: int, *, seed: int = 1, first_day: int = FIRST_DAY) -> list[Sample]:
    """Reports of all receivers in turn, five for each day."""
    chance = random.Random(seed)
    return [_sample(chance, RECEIVERS[number % 5], first_day + number // 5) for number in range(count)]


def google(day: int, records: Sequence[Record]) -> bytes:
    """A ZIP archive that is the whole mail."""
    xml = (
        '<?xml version="1.0" encoding="UTF-8" ?>\n<feedback>\n  <version>1.0</version>\n'
        + _metadata("google.com", "noreply-dmarc-support@google.com", f"{day}7107811868587391", day)
        + _policy("<adkim>r</adkim><aspf>r</aspf><p>none</p><sp>none</sp><pct>100</pct><np>none</np>")
        + "".join(map(_record, records))
        + "</feedback>\n"
    )
    name = f"google.com!{DOMAIN}!{day * DAY_SECONDS}!{(day + 1) * DAY_SECONDS - 1}"
    return _mail(
        "application/zip",
        f"{name}.zip",
        zipped(xml.encode(), f"{name}.xml"),
        sender="noreply-dmarc-support@google.com",
    )


def microsoft(day: int, records: Sequence[Record]) -> bytes:
    """A gzip file beside a text, with more identifiers, on one line."""
    xml = (
        '<?xml version="1.0"?>\r\n<feedback xmlns:xsd="http://www.w3.org/2001/XMLSchema" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><version>1.0</version>'
        + _metadata("Enterprise Outlook", "dmarcreport@microsoft.com", f"{day:032x}", day)
        + _policy("<adkim>r</adkim><aspf>r</aspf><p>none</p><sp>none</sp><pct>100</pct><fo>0</fo>")
        + "".join(
            _record(
                record,
                identifiers=f"<envelope_to>example.net</envelope_to><envelope_from>bounces.{DOMAIN}</envelope_from>",
            )
            for record in records
        )
        + "</feedback>"
    ).replace("\n  ", "")
    html = "Content-Type: text/html\r\n\r\n<div>This is a DMARC aggregate report.</div>"
    return _mail(
        "application/gzip",
        "report.xml.gz",
        gzip.compress(xml.encode(), mtime=0),
        sender="dmarcreport@microsoft.com",
        other=html,
    )


def yahoo(day: int, records: Sequence[Record]) -> bytes:
    """A gzip file with a wrong media type, without version and declaration."""
    xml = (
        "<feedback>\n"
        + _metadata("Yahoo", "dmarchelp@yahooinc.com", f"{day * DAY_SECONDS}.301223", day)
        + _policy("<adkim>r</adkim><aspf>r</aspf><p>none</p><pct>100</pct>")
        + "".join(_record(record, scope="") for record in records)
        + "</feedback>\n"
    )
    text = "Content-Type: text/plain\r\n\r\nThis is an aggregate report from Yahoo."
    return _mail(
        "application/x-whatever",
        "report",
        gzip.compress(xml.encode(), mtime=0),
        sender="noreply@dmarc.yahoo.com",
        other=text,
    )


def aol(day: int, records: Sequence[Record]) -> bytes:
    """XML as it is, in the namespace of a draft and an old encoding, with overrides."""
    reason = "<reason><type>forwarded</type><comment>caf\xe9</comment></reason>"
    xml = (
        '<?xml version="1.0" encoding="windows-1252"?>\n'
        '<ns1:feedback xmlns:ns1="http://dmarc.org/dmarc-xml/0.1">\n'
        + _metadata("AOL", "postmaster@aol.example", f"{DOMAIN}_{day}", day)
        + _policy("<adkim>r</adkim><aspf>r</aspf><p>none</p><sp></sp><pct>100</pct>")
        + "".join(_record(record, reason=reason) for record in records)
        + "</ns1:feedback>\n"
    )
    return _mail("text/xml", "report.xml", xml.encode("windows-1252"), sender="postmaster@aol.example")


def current(day: int, records: Sequence[Record]) -> bytes:
    """RFC 9990: another namespace, `pass` as a disposition, an extension, texts with a language."""
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">\n'
        "<version>1.0</version>\n"
        + _metadata("Example Mail", "dmarc@mail.example", f"{day}@mail.example", day, "<generator>made 1.0</generator>")
        + _policy("<p>none</p><sp>reject</sp><testing>n</testing><discovery_method>treewalk</discovery_method>")
        + '<extension><x:arc xmlns:x="urn:example"><x:count>7</x:count></x:arc></extension>\n'
        + "".join(_record(record, nothing="pass") for record in records)
        + "</feedback>\n"
    )
    return _mail("application/gzip", "report.xml.gz", gzip.compress(xml.encode(), mtime=0), sender="dmarc@mail.example")


RECEIVERS: Sequence[tuple[str, Callable[[int, Sequence[Record]], bytes]]] = (
    ("google.com", google),
    ("Enterprise Outlook", microsoft),
    ("Yahoo", yahoo),
    ("AOL", aol),
    ("Example Mail", current),
)


def zipped(content: bytes, name: str = "report.xml", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP archive with one file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def _sample(chance: random.Random, receiver: tuple[str, Callable[[int, Sequence[Record]], bytes]], day: int) -> Sample:
    organization, write = receiver
    records = [
        Record("192.0.2.10", chance.randrange(20, 400), dkim=True, spf=True),
        Record("2001:db8::25", chance.randrange(1, 50), dkim=True, spf=chance.random() < 0.5),
        Record("198.51.100.7", chance.randrange(1, 9), dkim=True, spf=False, header_from=f"news.{DOMAIN}"),
    ] + [
        Record(f"203.0.113.{chance.randrange(1, 255)}", chance.randrange(1, 4), dkim=False, spf=False)
        for _ in range(chance.randrange(3))
    ]
    mail = write(day, records)
    domain = re.findall(r"^From: <.*@(.*)>", mail.decode(), re.MULTILINE)[0].strip()
    return Sample(organization, domain, day, records, mail)


def _metadata(organization: str, email: str, report_id: str, day: int, more: str = "") -> str:
    begin = day * DAY_SECONDS
    return (
        f"  <report_metadata>\n  <org_name>{organization}</org_name>\n  <email>{email}</email>\n"
        f"  <report_id>{report_id}</report_id>\n"
        f"  <date_range><begin>{begin}</begin><end>{begin + DAY_SECONDS - 1}</end></date_range>{more}\n"
        "  </report_metadata>\n"
    )


def _policy(fields: str) -> str:
    return f"  <policy_published>\n  <domain>{DOMAIN}</domain>\n  {fields}</policy_published>\n"


def _record(
    record: Record, *, identifiers: str = "", reason: str = "", scope: str = "<scope>mfrom</scope>", nothing: str = ""
) -> str:
    dkim, spf = ("pass" if passed else "fail" for passed in (record.dkim, record.spf))
    disposition = nothing if nothing and (record.dkim or record.spf) else record.disposition
    return (
        f"  <record>\n  <row>\n  <source_ip>{record.source}</source_ip>\n  <count>{record.count}</count>\n"
        f"  <policy_evaluated><disposition>{disposition}</disposition><dkim>{dkim}</dkim><spf>{spf}</spf>{reason}"
        f"</policy_evaluated>\n  </row>\n"
        f"  <identifiers>{identifiers}<header_from>{record.header_from}</header_from></identifiers>\n"
        f"  <auth_results><dkim><domain>{DOMAIN}</domain><selector>s1</selector><result>{dkim}</result></dkim>"
        f"<spf><domain>bounces.{DOMAIN}</domain>{scope}<result>{spf}</result></spf></auth_results>\n  </record>\n"
    )


def _mail(media_type: str, name: str, content: bytes, *, sender: str, other: str = "") -> bytes:
    part = (
        f'Content-Type: {media_type}; name="{name}"\r\n'
        f'Content-Disposition: attachment; filename="{name}"\r\n'
        "Content-Transfer-Encoding: base64\r\n\r\n" + base64.encodebytes(content).decode().replace("\n", "\r\n")
    )
    date = dt.datetime(2026, 2, 1, tzinfo=dt.UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    head = f"Date: {date}\r\nFrom: <{sender}>\r\nSubject: Report Domain: {DOMAIN}\r\nMIME-Version: 1.0\r\n"
    if not other:
        return f"{head}{part}".encode()
    boundary = "=_report"
    return (
        f'{head}Content-Type: multipart/mixed; boundary="{boundary}"\r\n\r\n'
        f"--{boundary}\r\n{other}\r\n--{boundary}\r\n{part}\r\n--{boundary}--\r\n"
    ).encode()
