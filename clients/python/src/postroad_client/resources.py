"""The rest of the API: what both clients offer beside sending and reading, and the resources that an account manages.

Arguments have the names of the API, and results are its objects, as dictionaries. `ResultT` is such a result, or for
asyncio the promise of one; `ItemsT` the items of a list, whose pages are read when they are needed.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from postroad_client import calls, emails

ResultT = TypeVar("ResultT")
ItemsT = TypeVar("ItemsT")
Members = Mapping[str, Any]
# The members that lead to the next page, and the parameters that they become.
NEXT_PAGES = {"next_cursor": "cursor", "next_before": "before"}


def next_page(page: Members) -> dict[str, Any] | None:
    """The parameters of the page after this one, if there is one."""
    found = {parameter: page[name] for name, parameter in NEXT_PAGES.items() if page.get(name) is not None}
    return found or None


class Resource(Generic[ResultT, ItemsT]):
    """What an account has several of."""

    def __init__(self, call: Callable[..., ResultT], each: Callable[..., ItemsT]) -> None:
        self._call = call
        self._each = each


class Messages(Resource[ResultT, ItemsT]):
    """The message log."""

    def list(self, **filters: Any) -> ItemsT:
        """The messages that match, newest first: status, source, from, to, tag, metadata, after, before, mode."""
        return self._each("/v1/messages", items="messages", query=filters)

    def get(self, message_id: str) -> ResultT:
        """A message with its details and all attempts."""
        return self._call("GET", "/v1/messages/{}", message_id)

    def retry(self, message_id: str, *, recipient_id: str | None = None) -> ResultT:
        """Retry the waiting recipients now, or one of them."""
        body = {} if recipient_id is None else {"recipient_id": recipient_id}
        return self._call("POST", "/v1/messages/{}/retry", message_id, body=body)


class Templates(Resource[ResultT, ItemsT]):
    """Message templates, by alias."""

    def list(self, **filters: Any) -> ItemsT:
        """All templates, without their bodies."""
        return self._each("/v1/templates", items="templates", query=filters)

    def get(self, alias: str) -> ResultT:
        """A template with its bodies."""
        return self._call("GET", "/v1/templates/{}", alias, member="template")

    def save(self, alias: str, *, subject: str, text: str | None = None, html: str | None = None) -> ResultT:
        """Create or replace a template."""
        body = {"subject": subject, "text": text, "html": html}
        return self._call("PUT", "/v1/templates/{}", alias, body=_given(body), member="template")

    def delete(self, alias: str) -> ResultT:
        """Remove a template."""
        return self._call("DELETE", "/v1/templates/{}", alias)

    def preview(self, alias: str, *, variables: Members | None = None) -> ResultT:
        """Render a template without sending it."""
        body = {"variables": variables or {}}
        return self._call("POST", "/v1/templates/{}/preview", alias, body=body, repeatable=True)


class Suppressions(Resource[ResultT, ItemsT]):
    """Addresses that receive no mail from the account."""

    def list(self, **filters: Any) -> ItemsT:
        """The suppressed addresses in alphabetical order: email, source."""
        return self._each("/v1/suppressions", items="suppressions", query=filters)

    def create(self, email: str, *, reason: str | None = None) -> ResultT:
        """Suppress an address."""
        body = _given({"email": email, "reason": reason})
        return self._call("POST", "/v1/suppressions", body=body, member="suppression")

    def get(self, email: str) -> ResultT:
        """Since when an address is suppressed, and why."""
        return self._call("GET", "/v1/suppressions/{}", email, member="suppression")

    def delete(self, email: str) -> ResultT:
        """Remove an address from the list."""
        return self._call("DELETE", "/v1/suppressions/{}", email)


class Domains(Resource[ResultT, ItemsT]):
    """Domains that the account can send from."""

    def list(self, **filters: Any) -> ItemsT:
        """All domains, oldest first."""
        return self._each("/v1/domains", items="domains", query=filters)

    def create(self, name: str) -> ResultT:
        """Register a domain. The result has the DNS records to publish."""
        return self._call("POST", "/v1/domains", body={"name": name}, member="domain")

    def get(self, domain_id: str) -> ResultT:
        """A domain with its DNS records."""
        return self._call("GET", "/v1/domains/{}", domain_id, member="domain")

    def delete(self, domain_id: str) -> ResultT:
        """Remove a domain."""
        return self._call("DELETE", "/v1/domains/{}", domain_id)

    def check(self, domain_id: str) -> ResultT:
        """Check the DNS records now."""
        return self._call("POST", "/v1/domains/{}/check", domain_id, member="domain", repeatable=True)

    def rotate_key(self, domain_id: str) -> ResultT:
        """Create a new DKIM key."""
        return self._call("POST", "/v1/domains/{}/rotate-key", domain_id, member="domain")


class Webhooks(Resource[ResultT, ItemsT]):
    """Webhook endpoints, and the log of their deliveries."""

    def list(self) -> ItemsT:
        """All webhooks."""
        return self._each("/v1/webhooks", items="webhooks", query={})

    def create(self, url: str, **settings: Any) -> ResultT:
        """Create a webhook: events, tags, version, …. The result has the `webhook` and, this once, its `secret`."""
        return self._call("POST", "/v1/webhooks", body={"url": url, **settings})

    def get(self, webhook_id: str) -> ResultT:
        """A webhook, without its secret."""
        return self._call("GET", "/v1/webhooks/{}", webhook_id, member="webhook")

    def update(self, webhook_id: str, **settings: Any) -> ResultT:
        """Change a webhook. What is left out stays as it is."""
        return self._call("PATCH", "/v1/webhooks/{}", webhook_id, body=settings, member="webhook")

    def delete(self, webhook_id: str) -> ResultT:
        """Remove a webhook."""
        return self._call("DELETE", "/v1/webhooks/{}", webhook_id)

    def rotate_secret(self, webhook_id: str, *, overlap_hours: int | None = None) -> ResultT:
        """The new secret. The old one keeps signing for some hours."""
        body = _given({"overlap_hours": overlap_hours})
        return self._call("POST", "/v1/webhooks/{}/rotate-secret", webhook_id, body=body, member="secret")

    def ping(self, webhook_id: str) -> ResultT:
        """Send a test event; the delivery says what came of it."""
        return self._call("POST", "/v1/webhooks/{}/ping", webhook_id, member="delivery")

    def deliveries(self, webhook_id: str, **filters: Any) -> ItemsT:
        """The deliveries of the last 7 days, newest first: message_id, status."""
        return self._each("/v1/webhooks/{}/deliveries", webhook_id, items="deliveries", query=filters)

    def get_delivery(self, webhook_id: str, delivery_id: str) -> ResultT:
        """A delivery with every attempt."""
        return self._call("GET", "/v1/webhooks/{}/deliveries/{}", webhook_id, delivery_id, member="delivery")

    def replay(self, webhook_id: str, delivery_id: str) -> ResultT:
        """Send an event once more; the new delivery."""
        return self._call("POST", "/v1/webhooks/{}/deliveries/{}/replay", webhook_id, delivery_id, member="delivery")

    def replay_failed(self, webhook_id: str, **period: Any) -> ResultT:
        """Replay the failed deliveries of a period: after, before."""
        return self._call("POST", "/v1/webhooks/{}/deliveries/replay", webhook_id, body=period)


class ApiKeys(Resource[ResultT, ItemsT]):
    """Keys for programs, with scopes."""

    def list(self, **filters: Any) -> ItemsT:
        """All keys, oldest first, without the keys themselves."""
        return self._each("/v1/api-keys", items="api_keys", query=filters)

    def create(self, name: str, **settings: Any) -> ResultT:
        """Create a key: scopes, mode, …. The result has the `api_key` and, this once, its `secret`."""
        return self._call("POST", "/v1/api-keys", body={"name": name, **settings})

    def update(self, key_id: str, **settings: Any) -> ResultT:
        """Change the name, the scopes or the limits of a key."""
        return self._call("PATCH", "/v1/api-keys/{}", key_id, body=settings, member="api_key")

    def revoke(self, key_id: str) -> ResultT:
        """Revoke a key."""
        return self._call("DELETE", "/v1/api-keys/{}", key_id)


class Account(Generic[ResultT, ItemsT]):
    """What both clients have beside `send`, `get` and `wait`."""

    def __init__(self, call: Callable[..., ResultT], each: Callable[..., ItemsT]) -> None:
        self._call = call
        self.messages = Messages(call, each)
        self.templates = Templates(call, each)
        self.suppressions = Suppressions(call, each)
        self.domains = Domains(call, each)
        self.webhooks = Webhooks(call, each)
        self.api_keys = ApiKeys(call, each)

    def send_batch(
        self, batch: Sequence[emails.Email], *, all_or_nothing: bool | None = None, idempotency_key: str | None = None
    ) -> ResultT:
        """Send up to 100 emails under one key. Each result has the `id` of its message, or its `error`."""
        members = {"emails": [emails.checked(each) for each in batch], "all_or_nothing": all_or_nothing}
        return self._send_batch(members, idempotency_key)

    def send_template_batch(self, *, idempotency_key: str | None = None, **members: Any) -> ResultT:
        """Send one template to up to 500 recipients: sender, template, recipients, …. The results as of a batch."""
        renamed = {"from" if name == "sender" else name: value for name, value in members.items()}
        return self._send_batch(renamed, idempotency_key)

    def _send_batch(self, members: Members, idempotency_key: str | None) -> ResultT:
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        body = _given(members)
        path = "/emails/batch"
        return self._call("POST", path, body=body, member="results", repeatable=True, idempotency_key=key)

    def reschedule(self, message_id: str, send_at: dt.datetime | str | None) -> ResultT:
        """Send a scheduled message at another time; None is now."""
        return self._call("PATCH", "/emails/{}", calls.check_id(message_id), body={"send_at": send_at})

    def cancel(self, message_id: str) -> ResultT:
        """Cancel the recipients for which no attempt has begun. The result says it for each recipient."""
        return self._call("POST", "/emails/{}/cancel", calls.check_id(message_id), repeatable=True)

    def statistics(self, period: str | None = None) -> ResultT:
        """Delivery statistics of a period: `24h`, `7d` or `30d`."""
        return self._call("GET", "/v1/statistics", query={"period": period}, member="statistics")

    def account(self) -> ResultT:
        """The account, its credits and its bounce rates."""
        return self._call("GET", "/v1/account", member="account")


def _given(members: Members) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
