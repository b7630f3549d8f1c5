"""The menu, the other places that `/find` knows, and the URLs of pages that others link to."""

from collections.abc import Collection
from typing import Final
from urllib import parse

import msgspec

from postroad.model.people import callers
from postroad.model.search import search_query


class Entry(msgspec.Struct, frozen=True):
    """A place in the dashboard. `words` find it beside its own name; `name` is what its page calls `active`."""

    name: str
    path: str
    text: str
    words: str = ""
    permission: callers.Permission = callers.Permission.VIEW


APPROVALS: Final = Entry("approvals", "/approvals", "Approvals", "agents waiting approve reject")
CREDITS: Final = Entry("credits", "/credits", "Credits", "balance ledger usage")
INBOX: Final = Entry("inbox", "/inbox", "Inbox", "development simulator received caught", callers.Permission.CONTENT)
RECEIVED: Final = Entry(
    "received", "/received", "Received", "inbound incoming replies routes mx", callers.Permission.CONTENT
)
Sections = tuple[tuple[str, tuple[Entry, ...]], ...]
OPERATE: Final = callers.Permission.OPERATE
SECTIONS: Final[Sections] = (
    (
        "Mail",
        (
            Entry("overview", "/", "Overview", "home dashboard statistics charts delivery rates providers queue"),
            Entry("messages", "/messages", "Messages", "log emails search deferred export csv"),
            Entry("failures", "/failures", "Failures", "bounces causes reasons providers rejected"),
            RECEIVED,
            INBOX,
        ),
    ),
    (
        "Sending",
        (
            Entry("domains", "/domains", "Domains", "dns dkim spf dmarc verify senders warm-up"),
            Entry("templates", "/templates", "Templates", "layouts html editor"),
            Entry("suppressions", "/suppressions", "Suppressions", "unsubscribe complaints blocklist import export"),
            APPROVALS,
        ),
    ),
    (
        "Connect",
        (
            Entry("welcome", "/welcome", "Get started", "setup test email snippets code"),
            Entry("credentials", "/credentials", "SMTP credentials", "username password relay"),
            Entry("keys", "/keys", "API keys", "tokens secrets scopes"),
            Entry("requests", "/requests", "Requests", "api calls log errors refused failed 403"),
            Entry("webhooks", "/webhooks", "Webhooks", "endpoint events deliveries secret replay"),
        ),
    ),
    (
        "Account",
        (
            CREDITS,
            Entry("team", "/team", "Team", "users invite roles members"),
            Entry("audit_log", "/audit-log", "Audit log", "history changes logins who"),
        ),
    ),
    ("Installation", (Entry("operator", "/operator", "Operator console", "health checks processes hosts", OPERATE),)),
)
# The menu of the operator console (dashboard/operator).
OPERATOR_SECTIONS: Final[Sections] = (
    (
        "Installation",
        (
            Entry("operator_health", "/operator", "Health", permission=OPERATE),
            Entry("operator_queue", "/operator/queue", "Queue", "operator waiting hold release retry", OPERATE),
            Entry("operator_providers", "/operator/providers", "Providers", "operator pause limits hosts", OPERATE),
            Entry("operator_sources", "/operator/sources", "Source addresses", "operator pools warm-up IP", OPERATE),
            Entry("operator_consistency", "/operator/consistency", "Consistency check", "operator verify", OPERATE),
        ),
    ),
    (
        "Accounts and users",
        (
            Entry("operator_accounts", "/operator/accounts", "Accounts", "suspend credits limits close", OPERATE),
            Entry("operator_operators", "/operator/operators", "Operators", "role invite people users", OPERATE),
            Entry("operator_audit_log", "/operator/audit-log", "All audit logs", "history changes who", OPERATE),
        ),
    ),
    ("Your account", (Entry("overview", "/", "Account dashboard"),)),
)
CHANGE: Final = callers.Permission.CHANGE
# Places where something is done; the palette has more, which need scripts (assets/palette.js).
ACTIONS: Final = (
    Entry("send_test", "/welcome", "Send a test message", "action try email", CHANGE),
    Entry("new_key", "/keys#new-key", "Create an API key", "action new add token", CHANGE),
    Entry("new_webhook", "/webhooks#new-webhook", "Create a webhook", "action new add endpoint", CHANGE),
    Entry("new_domain", "/domains#field-name", "Add a domain", "action new", CHANGE),
    Entry("new_template", "/template/new", "Create a template", "action new", CHANGE),
    Entry("new_route", "/received/routes#new-route", "Create a route", "action new receive inbound mail", CHANGE),
    Entry("invite", "/team#invite", "Invite a user", "action add team member person", callers.Permission.MANAGE),
)
# Not in the menu.
ELSEWHERE: Final = (
    Entry("tail", "/tail", "Live log", "tail events stream follow"),
    Entry("reputation", "/#reputation", "Reputation", "blocked complaints spam deferred providers warm-up"),
    Entry("glossary", "/glossary", "Glossary", "help words terms meaning status"),
    Entry("roles", "/team/roles", "Roles", "permissions owner admin developer analyst read only"),
    Entry("team_sso", "/team/sso", "Single sign-on", "sso oidc identity provider", callers.Permission.OWN),
)
SETTINGS: Final = (
    Entry("profile", "/profile", "Profile", "settings me user role"),
    Entry("time_zone", "/profile#time-zone", "Time zone", "settings clock utc times"),
    Entry("password", "/profile#password", "Password", "settings change login"),
    Entry(
        "security",
        "/profile/security",
        "Two-factor authentication",
        "settings totp passkeys authenticator recovery codes 2fa mfa",
    ),
    Entry("mail", "/profile#mail", "Notifications", "settings mail notices digest unsubscribe"),
    Entry("token", "/profile#token", "API token", "settings personal access"),
)


def visible(
    sections: Sections, permissions: Collection[callers.Permission], *, hidden: Collection[Entry] = ()
) -> list[tuple[str, list[Entry]]]:
    """A menu as somebody with these permissions sees it, without what there is no use for."""
    shown = (
        (title, [entry for entry in entries if entry.permission in permissions and entry not in hidden])
        for title, entries in sections
    )
    return [(title, entries) for title, entries in shown if entries]


def matches(entry: Entry, text: str) -> bool:
    """Whether each word of the text begins a word of the entry."""
    known = f"{entry.text} {entry.words}".lower().split()
    return all(any(known_word.startswith(word) for known_word in known) for word in text.lower().split())


MESSAGES: Final = "/messages"
BULK: Final = "/bulk"


def url(path: str, /, **parameters: str | None) -> str:
    given = {name: value for name, value in parameters.items() if value}
    return f"{path}?{parse.urlencode(given)}" if given else path


def messages_url(search: str, cursor: str | None = None) -> str:
    return url(MESSAGES, search=search, cursor=cursor)


def messages_with_url(value: str, name: str) -> str:
    """The same for one filter of the search and its value."""
    return messages_url(search_query.format(search_query.Query(more=((search_query.Term(name, value),),))))


def message_url(message_id: str, search: str) -> str:
    return url(f"{MESSAGES}/{message_id}", search=search)


def bulk_url(action: str, search: str) -> str:
    return url(BULK, action=action, search=search)


def recipient_url(email: str) -> str:
    return f"/recipients/{parse.quote(email, safe='')}"
