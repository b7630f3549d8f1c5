"""The JSON form of records: the fields of `/v1` and the account id, and never a hash."""

import dataclasses
from typing import Final

from postroad.mail.signing import domain_keys
from postroad.model.domains import warmup
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services import audit_log as services_audit_log
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.people import api_keys as services_api_keys
from postroad.storage.mail import domains, suppressions, templates
from postroad.storage.people import accounts, audit_log, credentials, users

View = dict[str, object]

_ACCOUNT: Final = (
    "id name status suspended_reason suspended_by credits request_rate recipients_per_day created_at".split()
)
_USER: Final = "id account_id email role disabled_at created_at joined_at last_login_at".split()
_ENTRY: Final = "id account_id at actor action subject detail text request_id client_address".split()
_CREATED: Final = "created_at created_by created_by_email last_used_at disabled_at revoked_at".split()
_CREDENTIAL: Final = ["id", "account_id", "name", "username", *_CREATED]
_API_KEY: Final = ["id", "account_id", "credential_id", "name", "hint", "mode", "scopes", *_CREATED]
_LIMITS: Final = "domains networks templates recipients_per_day credit_budget expires_at approval_above".split()
_DOMAIN: Final = "id account_id name verified verified_at verified_by failing_since warm created_at dkim".split()
_RECORD: Final = "purpose name type value required managed state detail checked_at".split()
_SUPPRESSION: Final = "email account_id source reason smtp_code message_id created_at".split()
_TEMPLATE: Final = "id account_id alias subject text html created_at updated_at".split()


def account(record: accounts.Account) -> View:
    """An account with its balances."""
    balances = {"available": record.available, "reserved": record.reserved}
    return times.wire_fields(record, _ACCOUNT, status=record.state, credits=balances)


def user(record: users.User) -> View:
    """A user."""
    return times.wire_fields(record, _USER)


def audit_log_entry(record: audit_log.Entry) -> View:
    """An entry of the audit log."""
    return times.wire_fields(
        record,
        _ENTRY,
        at=times.to_wire(record.created_at),
        actor={"kind": services_audit_log.kind_of(record), "id": record.user_id, "name": record.actor},
        text=services_audit_log.text(record),
        request_id=record.request_id or None,
        client_address=record.client_address or None,
    )


def creator(record: users.CreatedByUser) -> str | None:
    """Who created a record, in a table."""
    return record.created_by_email or (record.created_by and "removed user")


def credential(record: credentials.Credential) -> View:
    """An SMTP credential, without its password."""
    return times.wire_fields(record, _CREDENTIAL)


def api_key(record: credentials.ApiKey, *, now: int) -> View:
    """An API key, without its secret, with its limits and what is used of them."""
    limits = times.wire_fields(record.limits, _LIMITS)
    usage = callers.usage_on_day(record.usage or callers.KeyUsage(), now=now)
    return {
        **times.wire_fields(record, _API_KEY, mode=services_api_keys.mode_of(record), scopes=record.scopes.split()),
        **limits,
        "recipients_today": None if record.limits.recipients_per_day is None else usage.recipients,
        "credits_used": None if record.limits.credit_budget is None else usage.credits,
    }


def domain(record: domains.Domain, dkim: domain_keys.DkimRecord | None) -> View:
    """A sender domain with its DKIM record; `dkim` is null in lists until the key is created."""
    shown = None if dkim is None else dataclasses.asdict(dkim)
    return times.wire_fields(
        record, _DOMAIN, verified=record.verified_at is not None, warm=bool(record.warm), dkim=shown
    )


def dns_record(shown: domain_checks.RecordStatus) -> View:
    """A DNS record of a sender domain, and its last check result."""
    record = shown.record
    return times.wire_fields(
        shown, _RECORD, purpose=record.purpose, name=record.name, type=record.type, managed=record.managed
    )


def warmup_view(view: warmup.View | None) -> View | None:
    """The warm-up of a domain; None if it needs none."""
    return None if view is None else times.wire_fields(view, ("used", "cap", "tomorrow", "next_at"))


def suppression(record: suppressions.Suppression) -> View:
    """A suppressed address; `smtp_code` and `message_id` identify the reply that caused it."""
    return times.wire_fields(record, _SUPPRESSION, email=record.email_key)


def template(record: templates.Template) -> View:
    """A template."""
    return times.wire_fields(record, _TEMPLATE)
