"""The JSON form of records: the fields of `/v1` and the account id, and never a hash."""

import dataclasses

from postroad.model import times, warmup
from postroad.services import audit_log as services_audit_log
from postroad.services.dkim import domain_keys
from postroad.services.domains import checks as domain_checks
from postroad.storage import accounts, api_keys, audit_log, credentials, domains, suppressions, templates, users

View = dict[str, object]


def account(record: accounts.Account) -> View:
    """An account with its balances."""
    return {
        "id": record.id,
        "name": record.name,
        "status": record.status,
        "suspended_reason": record.suspended_reason,
        "suspended_by": record.suspended_by,
        "credits": {"available": record.available, "reserved": record.reserved},
        "created_at": times.to_wire(record.created_at),
    }


def user(record: users.User) -> View:
    """A user."""
    return {
        "id": record.id,
        "account_id": record.account_id,
        "email": record.email,
        "role": record.role,
        "disabled_at": times.optional_to_wire(record.disabled_at),
        "created_at": times.to_wire(record.created_at),
        "joined_at": times.optional_to_wire(record.joined_at),
        "last_login_at": times.optional_to_wire(record.last_login_at),
    }


def audit_log_entry(record: audit_log.Entry) -> View:
    """An entry of the audit log."""
    return {
        "id": record.id,
        "account_id": record.account_id,
        "at": times.to_wire(record.created_at),
        "actor": {"kind": record.actor_kind, "id": record.user_id, "name": record.actor},
        "action": record.action,
        "subject": record.subject,
        "detail": record.detail,
        "text": services_audit_log.text(record),
        "request_id": record.request_id or None,
        "client_address": record.client_address or None,
    }


def credential(record: credentials.Credential) -> View:
    """An SMTP credential, without its password."""
    return {
        "id": record.id,
        "account_id": record.account_id,
        "name": record.name,
        "username": record.username,
        "created_at": times.to_wire(record.created_at),
        "last_used_at": times.optional_to_wire(record.last_used_at),
        "revoked_at": times.optional_to_wire(record.revoked_at),
    }


def api_key(record: api_keys.ApiKey) -> View:
    """An API key, without its secret."""
    return {
        "id": record.id,
        "account_id": record.account_id,
        "credential_id": record.credential_id,
        "name": record.name,
        "hint": record.hint,
        "scopes": record.scopes.split(),
        "created_at": times.to_wire(record.created_at),
        "last_used_at": times.optional_to_wire(record.last_used_at),
        "revoked_at": times.optional_to_wire(record.revoked_at),
    }


def domain(record: domains.Domain, dkim: domain_keys.DkimRecord | None) -> View:
    """A sender domain with its DKIM record; `dkim` is null in lists until the key is created."""
    return {
        "id": record.id,
        "account_id": record.account_id,
        "name": record.name,
        "verified": record.verified_at is not None,
        "verified_at": times.optional_to_wire(record.verified_at),
        "verified_by": record.verified_by,
        "failing_since": times.optional_to_wire(record.failing_since),
        "warm": bool(record.warm),
        "created_at": times.to_wire(record.created_at),
        "dkim": None if dkim is None else dataclasses.asdict(dkim),
    }


def dns_record(shown: domain_checks.RecordStatus) -> View:
    """A DNS record of a sender domain, and its last check result."""
    return {
        "purpose": shown.record.purpose,
        "name": shown.record.name,
        "type": shown.record.type,
        "value": shown.value,
        "required": shown.required,
        "managed": shown.record.managed,
        "state": shown.state,
        "detail": shown.detail,
        "checked_at": times.optional_to_wire(shown.checked_at),
    }


def warmup_view(view: warmup.View | None) -> View | None:
    """The warm-up of a domain; None if it needs none."""
    if view is None:
        return None
    return {
        "used": view.used,
        "cap": view.cap,
        "tomorrow": view.tomorrow,
        "next_at": times.to_wire(view.next_at),
    }


def suppression(record: suppressions.Suppression) -> View:
    """A suppressed address; `smtp_code` and `message_id` identify the reply that caused it."""
    return {
        "email": record.email_key,
        "account_id": record.account_id,
        "source": record.source,
        "reason": record.reason,
        "smtp_code": record.smtp_code,
        "message_id": record.message_id,
        "created_at": times.to_wire(record.created_at),
    }


def template(record: templates.Template) -> View:
    """A template."""
    return {
        "id": record.id,
        "account_id": record.account_id,
        "alias": record.alias,
        "subject": record.subject,
        "text": record.text,
        "html": record.html,
        "created_at": times.to_wire(record.created_at),
        "updated_at": times.to_wire(record.updated_at),
    }
