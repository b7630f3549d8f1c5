"""The records that DNS should have for a sender domain, and what follows from what it has.

Four of them. `dkim` proves that the domain is the account's, and is what receivers check signatures by. `spf` says
which hosts may send; receivers judge it by the domain of the envelope sender (RFC 7208 section 2.4), so it stands at
the domain of return paths. `return_path` brings reports of late bounces here. `dmarc` is advice: large receivers ask
for it. Each is judged on its own, and the sentence that comes with a state says what was found and what to do.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from postroad.model import special_addresses
from postroad.protocol.dns import dkim_record, dmarc_record, spf_record, tag_lists

# The preference of the mail host in advice; any other will do.
MX_PREFERENCE: Final = 10
# What a sentence quotes of somebody's zone.
QUOTED_CHARACTERS: Final = 300


class RecordPurpose(StrEnum):
    """What a record is for."""

    DKIM = "dkim"
    SPF = "spf"
    RETURN_PATH = "return_path"
    DMARC = "dmarc"


class RecordState(StrEnum):
    """What DNS says of a record: `pending` before it was asked, `unknown` when it did not answer."""

    PENDING = "pending"
    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"
    UNKNOWN = "unknown"


ANSWERS: Final = (RecordState.OK, RecordState.MISSING, RecordState.WRONG, RecordState.UNKNOWN)
# Without these, mail is refused or not delivered; the others are good to have.
REQUIRED: Final = frozenset({RecordPurpose.DKIM, RecordPurpose.SPF})


@dataclass(frozen=True, slots=True)
class Service:
    """What customers' records say of this installation; what it does not know is empty."""

    host: str
    spf: tuple[str, ...]
    return_path_domain: str


@dataclass(frozen=True, slots=True)
class Record:
    """A record to publish. One that is `managed` is the operator's business. `value` is None when it is not known."""

    purpose: RecordPurpose
    name: str
    type: Literal["TXT", "MX"]
    value: str | None
    managed: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What DNS says of a record, in a sentence, and the texts of the same kind that stand there already."""

    state: RecordState
    detail: str
    found: tuple[str, ...] = ()


def service(
    *, host: str, spf: str, source_addresses: Sequence[str], smarthost: str, return_path_domain: str
) -> Service:
    """What the settings say. Mail through somebody else's host comes from addresses that only the operator knows."""
    name = host.lower().rstrip(".")
    full_name = name if "." in name else ""
    terms = tuple(spf.split())
    if not terms and not smarthost:
        terms = _public_terms(source_addresses) or ((f"a:{full_name}",) if full_name else ())
    return Service(full_name, terms, return_path_domain.lower().rstrip("."))


def _public_terms(addresses: Sequence[str]) -> tuple[str, ...]:
    """Private addresses are not what receivers see."""
    parsed = [ipaddress.ip_address(address) for address in addresses]
    return tuple(f"ip{one.version}:{one}" for one in parsed if special_addresses.kind_of(one) is None)


def records(domain: str, *, dkim_name: str, dkim_value: str, service: Service) -> tuple[Record, ...]:
    """All records of a domain, the most important first."""
    managed = service.return_path_domain not in {"", domain}
    return_path = service.return_path_domain or domain
    spf = spf_record.new_record(service.spf) if service.spf else None
    host = f"{MX_PREFERENCE} {service.host}" if service.host else None
    return (
        Record(RecordPurpose.DKIM, dkim_name, dkim_record.TYPE, dkim_value),
        Record(RecordPurpose.SPF, return_path, spf_record.TYPE, spf, managed),
        Record(RecordPurpose.RETURN_PATH, return_path, "MX", host, managed),
        Record(RecordPurpose.DMARC, dmarc_record.name(domain), dmarc_record.TYPE, dmarc_record.MINIMAL),
    )


def recommended_value(record: Record, finding: Finding, service: Service) -> str | None:
    """What the record should say, given what stands there: a domain may have one SPF record only, so it is merged."""
    if record.purpose is not RecordPurpose.SPF or record.value is None or not finding.found:
        return record.value
    if finding.state is RecordState.OK:
        return finding.found[0]
    return spf_record.merged(finding.found, service.spf)


def not_configured(record: Record) -> Finding:
    """The service itself cannot say what should stand there."""
    setting = "domains.spf" if record.purpose is RecordPurpose.SPF else "delivery.hostname"
    return Finding(RecordState.UNKNOWN, f"this service does not know its own part; its operator has to set {setting}")


def no_answer(record: Record, detail: str) -> Finding:
    """DNS did not answer."""
    return Finding(RecordState.UNKNOWN, f"DNS did not answer for {record.name} ({detail}); it will be asked again")


def check_dkim(record: Record, texts: Sequence[str]) -> Finding:
    """Whether receivers will find the key (RFC 6376 section 3.6.1)."""
    if not texts:
        return Finding(RecordState.MISSING, "there is no TXT record of this name; add it")
    keys = [text for text in texts if "p" in (tag_lists.parse(_unescaped(text)) or {})]
    if not keys:
        return Finding(RecordState.WRONG, "the TXT record there is no key; replace it by the value shown")
    if len(keys) > 1:
        return Finding(
            RecordState.WRONG, f"{len(keys)} keys stand there, and receivers take any; keep only the one shown"
        )
    if keys[0] != _unescaped(keys[0]):
        return Finding(RecordState.WRONG, "the text holds quotation marks or backslashes; enter it without them")
    problem = _key_problem(tag_lists.parse(keys[0]) or {}, tag_lists.parse(record.value or "") or {})
    return Finding(RecordState.WRONG, problem) if problem else Finding(RecordState.OK, "the key is there")


def _unescaped(text: str) -> str:
    """Zone files want marks that some forms take for a part of the text."""
    return text.replace("\\", "").replace('"', "")


def domain_appended_twice(record: Record, domain: str) -> Finding:
    """The most common slip: a form that adds the domain by itself was given the whole name."""
    short = record.name.removesuffix(f".{domain}")
    return Finding(RecordState.MISSING, f"it stands at {record.name}.{domain}; enter the name as {short} there")


def _key_problem(tags: dict[str, str], wanted: dict[str, str]) -> str | None:
    given, key = "".join(tags["p"].split()), wanted["p"]
    if not given:
        return "the key there is empty, which means revoked; enter the value shown"
    if given != key:
        if key.startswith(given):
            return (
                f"the key is cut off after {len(given)} of {len(key)} characters; "
                "strings of one record are joined without blanks, two records are not joined at all"
            )
        return "the key there is another one; replace it by the value shown"
    if tags.get("v", "DKIM1") != "DKIM1" or ("v" in tags and next(iter(tags)) != "v"):
        return "v=DKIM1 has to stand first"
    if tags.get("k", "rsa") != "rsa":
        return "k= has to be rsa"
    if "h" in tags and "sha256" not in [one.strip() for one in tags["h"].split(":")]:
        return "h= has to allow sha256; leave it away"
    if "s" in tags and not {"*", "email"} & {one.strip() for one in tags["s"].split(":")}:
        return "s= has to allow email; leave it away"
    return None


def check_return_path(record: Record, hosts: Sequence[tuple[int, str]], *, service: Service) -> Finding:
    """Whether reports of late bounces come here: to the most preferred mail host (RFC 5321 section 5.1)."""
    if not hosts:
        detail = f"there is no MX record at {record.name}; add it, so that bounces can come back"
        return Finding(RecordState.MISSING, detail)
    best = min(preference for preference, _ in hosts)
    names = sorted(host for preference, host in hosts if preference == best)
    if service.host in names:
        return Finding(RecordState.OK, "bounces come back to this service")
    if names == [""]:
        return Finding(
            RecordState.WRONG, f"{record.name} says that it takes no mail (RFC 7505); replace that MX record"
        )
    return Finding(
        RecordState.WRONG,
        f"found {quoted(', '.join(names))}; mail is delivered, but bounces that come late go there and are not "
        "noticed. Leave it so if the domain has mailboxes there",
    )


def check_dmarc(place: str, texts: Sequence[str]) -> Finding | None:
    """Whether a policy stands at one place; None when there is nothing, and the place above may have one."""
    found = [text for text in texts if dmarc_record.is_dmarc(text)]
    if not found:
        return None
    if len(found) > 1:
        return Finding(RecordState.WRONG, f"{len(found)} DMARC records at {place}; receivers then use none: keep one")
    try:
        policy = dmarc_record.policy(found[0])
    except dmarc_record.DmarcError as problem:
        return Finding(RecordState.WRONG, f"found {quoted(found[0])} at {place}: {problem}")
    return Finding(RecordState.OK, f"found p={policy} at {place}")


def verified_by_another_account() -> Finding:
    """The key is there, but the proof is not to be had."""
    return Finding(
        RecordState.OK, "the key is there, but another account has proven this domain; ask the operator to settle it"
    )


def no_dmarc() -> Finding:
    """Neither the domain nor one above it has a policy."""
    return Finding(RecordState.MISSING, "there is no DMARC record; large receivers want one. Add it")


def quoted(text: str) -> str:
    """What somebody else wrote, fit for a terminal and for every store."""
    shown = "".join(one if one.isprintable() else "?" for one in text[:QUOTED_CHARACTERS])
    return shown if len(text) <= QUOTED_CHARACTERS else f"{shown}…"
