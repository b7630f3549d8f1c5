"""The DNS records of a sender domain, and what a check of them finds.

`dkim` proves that the domain is the account's and holds the key of its signatures. While the key is rotated,
`dkim_next` holds the one that is about to sign, and `dkim_old` the one that has signed mail in flight. `dkim_ed25519`
is optional: the key of a second signature (RFC 8463). `return_path` routes asynchronous bounces to this service, and
`spf` lists the hosts that may send; receivers check it for the domain of the envelope sender (RFC 7208 section 2.4).
Both are for a subdomain, so that they change nothing about the mailboxes of the domain. `dmarc` is recommended: large
mailbox providers expect it, and it requests reports (`services/domains/received_reports.py`). Each record is checked on
its own, and `detail` says what was found and what to do.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

import msgspec

from postroad.model.units import destinations, times
from postroad.protocol.dns import dmarc_record, spf_record, tag_lists

# The MX preference that is recommended; any other works.
MX_PREFERENCE: Final = 10
# How much of a foreign DNS record a sentence quotes.
QUOTED_CHARACTERS: Final = 300


class RecordPurpose(StrEnum):
    """What a record is for."""

    DKIM = "dkim"
    DKIM_NEXT = "dkim_next"
    SPF = "spf"
    RETURN_PATH = "return_path"
    DMARC = "dmarc"
    DKIM_ED25519 = "dkim_ed25519"
    DKIM_ED25519_NEXT = "dkim_ed25519_next"
    DKIM_OLD = "dkim_old"
    DKIM_ED25519_OLD = "dkim_ed25519_old"


class RecordState(StrEnum):
    """The result of the last check: `pending` before the first, `unknown` when DNS did not answer."""

    PENDING = "pending"
    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"
    UNKNOWN = "unknown"


ANSWERS: Final = (RecordState.OK, RecordState.MISSING, RecordState.WRONG, RecordState.UNKNOWN)
# Without these, mail is refused or not delivered; the others are recommended, or optional.
REQUIRED: Final = frozenset({RecordPurpose.DKIM, RecordPurpose.SPF, RecordPurpose.RETURN_PATH})
OLD_KEYS: Final = frozenset({RecordPurpose.DKIM_OLD, RecordPurpose.DKIM_ED25519_OLD})
OPTIONAL: Final = OLD_KEYS | {RecordPurpose.DKIM_ED25519, RecordPurpose.DKIM_ED25519_NEXT}
_REPORTS_TAG: Final = "rua"
_ORDER: Final = {purpose: number for number, purpose in enumerate(RecordPurpose)}


# Of the subdomain of a customer's domain that is used for return paths, once a check has found its MX record.
RETURN_PATH_LABEL: Final = "bounces"


REPORTS_LOCAL_PART: Final = "reports"
_REPORTS: Final = re.compile(rf"{REPORTS_LOCAL_PART}(?:\+([^@]+))?@([^@]+)", re.ASCII | re.IGNORECASE)
# RFC 5321 section 4.5.3.1.1.
_LOCAL_PART_CHARACTERS: Final = 64


def report_address(domain: str, *, return_path_domain: str) -> str:
    """Where receivers send reports about a domain; empty if there can be no such address.

    It is of the same organization unless the return paths are the operator's, whose DNS then permits it (RFC 9990
    section 4, `host_records.py`).
    """
    if not return_path_domain:
        return f"{REPORTS_LOCAL_PART}@{RETURN_PATH_LABEL}.{domain}"
    local_part = f"{REPORTS_LOCAL_PART}+{domain}"
    return f"{local_part}@{return_path_domain}" if len(local_part) <= _LOCAL_PART_CHARACTERS else ""


def reported_domain(address: str, *, return_path_domain: str) -> str:
    """The domain whose address for reports this is; empty for any other address. Whose it is must be looked up."""
    found = _REPORTS.fullmatch(address)
    if found is None:
        return ""
    named, host = (found[1] or "").lower(), found[2].lower()
    domain = named or host.removeprefix(f"{RETURN_PATH_LABEL}.")
    return domain if report_address(domain, return_path_domain=return_path_domain) == address.lower() else ""


class Service(msgspec.Struct, frozen=True):
    """The values of this installation that customers' records contain; empty where unknown."""

    host: str
    spf: tuple[str, ...]
    # The operator's, for all customers; if empty, a subdomain of each customer's domain.
    return_path_domain: str


@dataclass(frozen=True, slots=True)
class Record:
    """A record to publish. The operator publishes those that are `managed`. `value` is None when unknown.

    A DKIM record has the `selector` of its key; an old key is `needed_until` the time at which its mail has arrived.
    `text` is what receivers find through a CNAME; nothing while the name is reserved for the next key.
    """

    purpose: RecordPurpose
    name: str
    type: Literal["TXT", "MX", "CNAME"]
    value: str | None
    managed: bool = False
    selector: str = ""
    needed_until: int | None = None
    text: str = ""


class Finding(msgspec.Struct, frozen=True):
    """The result for one record: its state, a sentence, and the records of its kind that DNS has."""

    state: RecordState
    detail: str
    found: tuple[str, ...] = ()


def service(
    *,
    host: str,
    spf: str,
    source_addresses: Sequence[str],
    has_upstreams: bool,
    return_path_domain: str,
) -> Service:
    """The values from the settings. Only the operator knows the addresses that upstreams send from."""
    name = host.lower().rstrip(".")
    full_name = name if "." in name else ""
    terms = tuple(spf.split())
    if not terms and not has_upstreams:
        terms = _public_terms(source_addresses) or ((f"a:{full_name}",) if full_name else ())
    return Service(full_name, terms, return_path_domain.lower().rstrip("."))


def _public_terms(addresses: Sequence[str]) -> tuple[str, ...]:
    """Receivers never see private addresses."""
    parsed = [ipaddress.ip_address(address) for address in addresses]
    return tuple(f"ip{address.version}:{address}" for address in parsed if destinations.kind_of(address) is None)


def records(domain: str, *, keys: Sequence[Record], service: Service) -> tuple[Record, ...]:
    """All records of a domain, with those of its keys, the most important first."""
    managed = service.return_path_domain not in {"", domain}
    return_path = service.return_path_domain or f"{RETURN_PATH_LABEL}.{domain}"
    spf = spf_record.new_record(service.spf) if service.spf else None
    host = f"{MX_PREFERENCE} {service.host}" if service.host else None
    dmarc = requesting(dmarc_record.FIRST, report_address(domain, return_path_domain=service.return_path_domain))
    made = (
        *keys,
        Record(RecordPurpose.SPF, return_path, spf_record.TYPE, spf, managed),
        Record(RecordPurpose.RETURN_PATH, return_path, "MX", host, managed),
        Record(RecordPurpose.DMARC, dmarc_record.name_of(domain), tag_lists.TYPE, dmarc),
    )
    return tuple(sorted(made, key=lambda record: _ORDER[record.purpose]))


def requesting(text: str, address: str) -> str:
    """A record that requests reports to this address as well, if there is one."""
    return tag_lists.with_item(text, _REPORTS_TAG, f"mailto:{address}") if address else text


def zone_line(record: Record, value: str) -> str:
    """The record with this value as a line of a zone file (RFC 1035 section 5.1)."""
    if record.type == tag_lists.TYPE:
        return tag_lists.zone_line(record.name, value)
    return f"{record.name}. IN {record.type} {value.removesuffix('.')}."


def recommended_value(record: Record, finding: Finding, service: Service) -> str | None:
    """The value to publish. A domain may have only one record of a kind, so ours is merged into an existing one."""
    if record.value is None or not finding.found:
        return record.value
    if record.purpose is RecordPurpose.DMARC:
        uri = (tag_lists.parse(record.value) or {}).get(_REPORTS_TAG)
        return tag_lists.with_item(finding.found[0], _REPORTS_TAG, uri) if uri else finding.found[0]
    if record.purpose is not RecordPurpose.SPF:
        return record.value
    if finding.state is RecordState.OK:
        return finding.found[0]
    return spf_record.merged(finding.found, service.spf)


def not_configured(record: Record) -> Finding:
    """The settings do not tell what the record should say."""
    setting = "domains.spf" if record.purpose is RecordPurpose.SPF else "delivery.hostname"
    return Finding(RecordState.UNKNOWN, f"not configured; the operator has to set {setting}")


def no_answer(record: Record, detail: str) -> Finding:
    """DNS did not answer."""
    return no_answer_for(record.name, detail)


def no_answer_for(name: str, detail: str) -> Finding:
    """DNS did not answer for a name that a record leads to."""
    return Finding(RecordState.UNKNOWN, f"DNS did not answer for {name} ({detail}); check again in a few minutes")


def check_dkim(record: Record, texts: Sequence[str]) -> Finding:
    """Whether receivers will find the key (RFC 6376 section 3.6.1)."""
    if not texts:
        return Finding(RecordState.MISSING, "no TXT record with this name; add it")
    keys = [text for text in texts if "p" in (tag_lists.parse(_unescaped(text)) or {})]
    if not keys:
        return Finding(RecordState.WRONG, "the TXT record is not a DKIM key; replace it with the value shown")
    if len(keys) > 1:
        return Finding(RecordState.WRONG, f"{len(keys)} keys found with this name; keep only the one shown")
    if keys[0] != _unescaped(keys[0]):
        return Finding(RecordState.WRONG, "the value contains quotation marks or backslashes; enter it without them")
    problem = _key_problem(tag_lists.parse(keys[0]) or {}, tag_lists.parse(record.text or record.value or "") or {})
    return Finding(RecordState.WRONG, problem) if problem else Finding(RecordState.OK, "key found")


def check_alias(record: Record, targets: Sequence[str]) -> Finding:
    """Whether a name leads to the operator's DNS, which has the key."""
    if not targets:
        return Finding(RecordState.MISSING, "no CNAME record with this name; add it")
    if targets[0] != record.value:
        return Finding(RecordState.WRONG, f"found a CNAME to {quoted(targets[0])}; replace it with the value shown")
    return Finding(RecordState.OK, "alias found")


def alias_without_key() -> Finding:
    """The alias is correct, but the operator's DNS lacks the key."""
    return Finding(RecordState.MISSING, "alias found, but the operator has not published the key yet; nothing to do")


def describe_old_key(record: Record, detail: str, *, needed_until: int | None) -> str:
    """What to do with the record of a key that no longer signs; `detail` is what was found."""
    if needed_until is None:
        return "this key no longer signs; remove the record"
    until = times.to_wire(needed_until)
    if record.type == "CNAME":
        return f"{detail}; mail signed with this key is in flight until {until}. Keep the record for the next key"
    return f"{detail}; mail signed with this key is in flight, so keep the record until {until}"


def _unescaped(text: str) -> str:
    """Some DNS forms keep the quoting of a zone file as part of the text."""
    return text.replace("\\", "").replace('"', "")


def domain_appended_twice(record: Record, domain: str) -> Finding:
    """The most common mistake: the full name was entered where the DNS provider appends the domain."""
    short = record.name.removesuffix(f".{domain}")
    return Finding(RecordState.MISSING, f"found at {record.name}.{domain}; enter the name as {short}")


def _key_problem(tags: dict[str, str], wanted: dict[str, str]) -> str | None:
    given, key = "".join(tags["p"].split()), wanted["p"]
    if not given:
        return "the key is empty, which means revoked; enter the value shown"
    if given != key:
        if key.startswith(given):
            return (
                f"the key is cut off after {len(given)} of {len(key)} characters; "
                "enter it as one record: strings of one record are joined, separate records are not"
            )
        return "found a different key; replace it with the value shown"
    if tags.get("v", "DKIM1") != "DKIM1" or ("v" in tags and next(iter(tags)) != "v"):
        return "v=DKIM1 must come first"
    if tags.get("k", "rsa") != wanted["k"]:
        return f"k= must be {wanted['k']}"
    if "h" in tags and "sha256" not in [algorithm.strip() for algorithm in tags["h"].split(":")]:
        return "h= must allow sha256; remove it"
    if "s" in tags and not {"*", "email"} & {service.strip() for service in tags["s"].split(":")}:
        return "s= must allow email; remove it"
    return None


def check_return_path(record: Record, hosts: Sequence[tuple[int, str]], *, service: Service) -> Finding:
    """Whether this service is the most preferred mail host, which receives the mail (RFC 5321 section 5.1)."""
    if not hosts:
        return Finding(RecordState.MISSING, f"no MX record at {record.name}; add it")
    best = min(preference for preference, _ in hosts)
    names = sorted(host for preference, host in hosts if preference == best)
    if service.host in names:
        return Finding(RecordState.OK, "mail to it arrives at this service")
    if names == [""]:
        return Finding(
            RecordState.WRONG, f"{record.name} has a null MX record (RFC 7505) and accepts no mail; replace it"
        )
    return Finding(
        RecordState.WRONG,
        f"found {quoted(', '.join(names))}, which is not this service; replace it with the value shown, or remove a "
        "wildcard record that covers this name",
    )


def no_address(host: str) -> Finding:
    """The MX record names this service, whose name leads nowhere."""
    return Finding(
        RecordState.WRONG,
        f"the MX record is right, but {host} has no address in DNS, so bounces are lost; "
        "the operator has to add an A or AAAA record for it",
    )


def usable_return_path(before: str, record: Record, finding: Finding) -> str:
    """The domain for the envelope senders of a customer's mail, by its last check; empty for the domain itself.

    Receivers may refuse a sender whose domain has no mail host, so a subdomain is used only while its MX record exists.
    A DNS failure changes nothing. Nothing is stored for the operator's domain, which the settings name.
    """
    was_found = finding.state is RecordState.OK or (finding.state is RecordState.UNKNOWN and before == record.name)
    return record.name if was_found and not record.managed else ""


def check_dmarc(place: str, texts: Sequence[str]) -> Finding | None:
    """The policy at one name; None when there is none, and the parent domain may have one."""
    found = [text for text in texts if dmarc_record.is_dmarc(text)]
    if not found:
        return None
    if len(found) > 1:
        return Finding(RecordState.WRONG, f"{len(found)} DMARC records at {place}, so receivers ignore them; keep one")
    try:
        policy = dmarc_record.policy_of(found[0])
    except dmarc_record.DmarcError as problem:
        return Finding(RecordState.WRONG, f"found {quoted(found[0])} at {place}: {problem}")
    # One that cannot be written into a zone file is not merged.
    is_mergeable = found[0].isprintable() and len(found[0]) <= spf_record.MAX_CHARACTERS
    return Finding(RecordState.OK, f"found p={policy} at {place}", tuple(found) if is_mergeable else ())


def verified_by_another_account() -> Finding:
    """The key is there, but the domain is verified by another account."""
    return Finding(
        RecordState.OK, "key found, but another account has verified this domain; ask the operator to resolve this"
    )


def no_dmarc() -> Finding:
    """Neither the domain nor a parent domain has a policy."""
    return Finding(RecordState.MISSING, "no DMARC record; large mailbox providers expect one. Add it")


def quoted(text: str) -> str:
    """Foreign text, safe for a terminal and for every database."""
    shown = "".join(character if character.isprintable() else "?" for character in text[:QUOTED_CHARACTERS])
    return shown if len(text) <= QUOTED_CHARACTERS else f"{shown}…"


# When the DNS of a sender domain is checked, and what the DKIM record means for its verification.
#
# A new domain is checked often, because somebody is waiting for it. A domain that DNS verified and whose record is gone
# has three days to restore it. A DNS failure changes nothing, and a domain that the operator verified is never changed
# by DNS. All times are microseconds.

MINUTE: Final = 60 * times.SECOND
# How long the record may be missing: a zone that breaks on Friday is repaired on Monday.
GRACE_PERIOD: Final = 72 * times.HOUR
# Check interval of an unverified domain or a new key up to this age; older ones are checked weekly.
UNVERIFIED_CHECK_INTERVALS: Final = ((times.HOUR, 5 * MINUTE), (times.DAY, times.HOUR), (30 * times.DAY, times.DAY))
LONG_UNVERIFIED_CHECK_INTERVAL: Final = 7 * times.DAY
# A failing domain is checked every hour while a repair is likely.
FAILING_CHECK_INTERVAL: Final = times.HOUR
FAILING_CHECK_PERIOD: Final = 30 * times.DAY
# Domains that were added together are not all checked together.
JITTER: Final = 0.1


class VerificationChange(StrEnum):
    """The result of a check."""

    NONE = "none"
    VERIFIED = "proven"
    FAILING = "failing"
    RECOVERED = "recovered"
    LOST = "lost"


def verification_change(
    state: RecordState, *, verified: bool, by_dns: bool, failing_since: int | None, now: int
) -> VerificationChange:
    """What the state of the DKIM record changes for a domain."""
    is_there = state is RecordState.OK
    if state is RecordState.UNKNOWN or (verified and not by_dns):
        return VerificationChange.NONE
    if not verified:
        return VerificationChange.VERIFIED if is_there else VerificationChange.NONE
    if is_there:
        return VerificationChange.NONE if failing_since is None else VerificationChange.RECOVERED
    if failing_since is None:
        return VerificationChange.FAILING
    return VerificationChange.LOST if now - failing_since >= GRACE_PERIOD else VerificationChange.NONE


def next_check(
    *,
    verified: bool,
    failing_since: int | None,
    created_at: int,
    check_hours: int,
    now: int,
    random_fraction: float,
    rotating_since: int | None = None,
) -> int:
    """When to check again; `random_fraction` (0 to 1) moves it by up to a tenth, either way.

    The record of a new key is awaited like that of a new domain.
    """
    if failing_since is not None and now - failing_since < FAILING_CHECK_PERIOD:
        delay = FAILING_CHECK_INTERVAL
    elif not verified:
        delay = _waiting_interval(now - created_at)
    elif rotating_since is not None:
        delay = min(check_hours * times.HOUR, _waiting_interval(now - rotating_since))
    else:
        delay = check_hours * times.HOUR
    return now + round(delay * (1 - JITTER + 2 * JITTER * random_fraction))


def _waiting_interval(age: int) -> int:
    """The check interval of a record that has been awaited for this long."""
    return next((often for limit, often in UNVERIFIED_CHECK_INTERVALS if age < limit), LONG_UNVERIFIED_CHECK_INTERVAL)
