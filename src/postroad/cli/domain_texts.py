"""The text of `postroad domain`: status, warm-up, and DNS records as zone file lines."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from postroad.model import domain_records, times, warmup
from postroad.protocol.dns import dkim_record
from postroad.services.domains import checks as domain_checks
from postroad.storage import domains

TITLES: Final = {
    domain_records.RecordPurpose.DKIM: "DKIM",
    domain_records.RecordPurpose.DKIM_NEXT: "DKIM, next key",
    domain_records.RecordPurpose.SPF: "SPF",
    domain_records.RecordPurpose.RETURN_PATH: "Return path",
    domain_records.RecordPurpose.DMARC: "DMARC",
    domain_records.RecordPurpose.DKIM_ED25519: "DKIM with Ed25519",
    domain_records.RecordPurpose.DKIM_ED25519_NEXT: "DKIM with Ed25519, next key",
    domain_records.RecordPurpose.DKIM_OLD: "DKIM, old key",
    domain_records.RecordPurpose.DKIM_ED25519_OLD: "DKIM with Ed25519, old key",
}


def status(domain: domains.Domain) -> str:
    """Whether the domain is verified."""
    if domain.verified_at is None:
        state = "not verified" if domain.failing_since is None else "no longer verified"
    else:
        state = "verified by DNS" if domain.verified_by == domains.DNS else "verified"
    if domain.failing_since is not None:
        state += f" (DNS check failing since {times.to_wire(domain.failing_since)})"
    return f"{domain.name} ({domain.id}): {state}"


def warmup_text(view: warmup.View | None) -> str:
    """The daily limit."""
    if view is None or view.cap is None:
        return "Warm-up: not required."
    today = f"Warm-up: {view.used} of {view.cap} recipients used today"
    if view.tomorrow == view.cap:
        return f"{today}. The limit grows the day after you use at least half of it."
    return f"{today}; tomorrow {'there is no limit' if view.tomorrow is None else f'the limit is {view.tomorrow}'}."


def rotation_steps(domain: str, *, is_in_zone: bool) -> str:
    """What to do after a key was created. In the zone of the operator, the aliases stay as they are."""
    publish = (
        "publish the output of 'postroad domain records'"
        if is_in_zone
        else "publish the record of the next key, and keep the current one"
    )
    return f"Next: {publish}; then run 'postroad domain check {domain}'. The new key signs once the check finds it."


def for_operator(shown: domain_checks.RecordStatus) -> domain_checks.RecordStatus:
    """The record for the reader of commands, who publishes what is in the zone `domains.key_zone`."""
    if not _lacks_key(shown):
        return shown
    advice = "alias found, but its key is not in your zone; run 'postroad domain records' and publish its output"
    return dataclasses.replace(shown, detail=shown.detail.replace(shown.found, advice))


def _lacks_key(shown: domain_checks.RecordStatus) -> bool:
    """Whether the customer's alias is correct, and leads to nothing."""
    return domain_records.Finding(shown.state, shown.found) == domain_records.alias_without_key()


def records(shown: Sequence[domain_checks.RecordStatus], *, only_incomplete: bool) -> str:
    """The records and their check results. `only_incomplete` omits the zone lines of correct records."""
    return "\n".join(_record(one, with_line=not only_incomplete or _is_incomplete(one)) for one in shown)


def _is_incomplete(shown: domain_checks.RecordStatus) -> bool:
    return shown.state != domain_records.RecordState.OK and not _lacks_key(shown)


def _record(shown: domain_checks.RecordStatus, *, with_line: bool) -> str:
    record = shown.record
    detail = shown.detail[:1].upper() + shown.detail[1:]
    text = f"{TITLES[record.purpose]}{_importance(shown)}: {shown.state}. {detail}{'' if detail.endswith('.') else '.'}"
    return f"{text}\n    {zone_line(shown)}" if with_line and shown.value is not None else text


def _importance(shown: domain_checks.RecordStatus) -> str:
    if shown.record.managed:
        return " (managed by the operator)"
    if shown.record.purpose in domain_records.OLD_KEYS or shown.required:
        return ""
    return " (optional)" if shown.optional else " (recommended)"


def zone_line(shown: domain_checks.RecordStatus) -> str:
    """The record as a line of a zone file (RFC 1035 section 5.1)."""
    value = shown.value or ""
    if shown.record.type == dkim_record.TYPE:
        return dkim_record.zone_line(shown.record.name, value.replace("\\", "\\\\").replace('"', '\\"'))
    return f"{shown.record.name}. IN {shown.record.type} {value}."
