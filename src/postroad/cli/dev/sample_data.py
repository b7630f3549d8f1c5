"""What the sample week of `postroad dev` is made of: who sends what to whom, and what the destinations reply."""

from dataclasses import dataclass
from typing import Final

from postroad.model.domains import domain_records
from postroad.model.mail import simulated_outcomes, statuses
from postroad.model.people import callers

State = domain_records.RecordState
_Provider = simulated_outcomes.SimulatedProvider
Behaviour = simulated_outcomes.ProviderBehaviour

# Mail by hour of the day, in UTC: few write at night, most in the morning.
HOURS: Final = (1, 1, 1, 1, 1, 2, 4, 7, 11, 12, 11, 9, 8, 9, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
WEEKEND_SHARE: Final = 0.35
FIRST_NAMES: Final = "ada grace alan edsger barbara donald margaret linus radia ken frances dennis hedy tim".split()
LAST_NAMES: Final = "lovelace hopper turing dijkstra liskov knuth hamilton perlman allen ritchie lamarr".split()
# Addresses that people have mistyped, and that nobody has.
MISTYPED: Final = "ada.lovelac grace.hoper alan.turning edsger.dijstra donald.knut ken.thomson".split()


@dataclass(frozen=True, slots=True)
class Destination:
    """Where mail goes, and how often it is deferred, bounces and fails there, in a thousand."""

    domain: str
    provider_queue: str
    host: str
    address: str
    weight: int
    deferred: int
    bounced: int
    failed: int
    provider: simulated_outcomes.SimulatedProvider = _Provider.APPLE


@dataclass(frozen=True, slots=True)
class Kind:
    """What is sent, by whom, how often."""

    sender: str
    subject: str
    text: str
    html: str
    tags: tuple[str, ...]
    source: statuses.Source
    weight: int


DESTINATIONS: Final = (
    Destination("gmail.com", "google", "gmail-smtp-in.l.google.com", "142.250.27.26", 46, 25, 22, 2, _Provider.GOOGLE),
    Destination(
        "outlook.com",
        "microsoft",
        "outlook-com.olc.protection.outlook.com",
        "52.101.73.6",
        22,
        70,
        36,
        12,
        _Provider.MICROSOFT,
    ),
    Destination("icloud.com", "apple", "mx01.mail.icloud.com", "17.57.156.30", 10, 20, 20, 3),
    Destination("yahoo.com", "yahoo", "mta5.am0.yahoodns.net", "67.195.204.77", 9, 110, 40, 22, _Provider.YAHOO),
    Destination("bakery.example", "others", "mx1.bakery.example", "203.0.113.25", 8, 40, 44, 5),
    Destination("museum.example", "others", "mail.museum.example", "198.51.100.4", 5, 30, 55, 5),
)
KINDS: Final = (
    Kind(
        sender="Corner Shop <orders@shop.example>",
        subject="Your order {number} is on its way",
        text="Hello {name},\n\nyour order {number} left our shop today and should be with you on {day}.\n",
        html="<h1>On its way</h1><p>Hello {name},</p><p>your order <b>{number}</b> left our shop today and should be "
        "with you on {day}.</p>",
        tags=("order", "shipping"),
        source=statuses.Source.API,
        weight=5,
    ),
    Kind(
        sender="Corner Shop <billing@shop.example>",
        subject="Invoice {number}",
        text="Hello {name},\n\nyour invoice {number} is attached. Thank you.\n",
        html="<p>Hello {name},</p><p>your invoice <b>{number}</b> is attached. Thank you.</p>",
        tags=("invoice",),
        source=statuses.Source.SMTP,
        weight=3,
    ),
    Kind(
        sender="Corner Shop <hello@shop.example>",
        subject="Choose a new password",
        text="Hello {name},\n\nsomeone has asked for a new password. The link works for an hour.\n",
        html="<p>Hello {name},</p><p>someone has asked for a new password. The link works for an hour.</p>",
        tags=("account",),
        source=statuses.Source.API,
        weight=2,
    ),
    Kind(
        sender="Corner Shop <hello@shop.example>",
        subject="Welcome, {name}",
        text="Hello {name},\n\nThanks for joining us.\n",
        html="<p>Hello <b>{name}</b>,</p><p>Thanks for joining us.</p>",
        tags=("account", "welcome"),
        source=statuses.Source.API,
        weight=2,
    ),
    Kind(
        sender="Corner Shop News <news@news.shop.example>",
        subject="New on the shelves this week",
        text="Hello {name},\n\nthis week: {number} new things, and the first oranges.\n",
        html="<h1>New this week</h1><p>Hello {name},</p><p>{number} new things, and the first oranges.</p>",
        tags=("newsletter",),
        source=statuses.Source.API,
        weight=2,
    ),
)
# What a provider does, by how often: before it accepts a message, or instead of it.
DEFERRED: Final = {Behaviour.RATE_LIMITED: 2, Behaviour.GREYLISTED: 1}
BOUNCED: Final = {Behaviour.UNKNOWN_USER: 6, Behaviour.BLOCKED: 3}

# What DNS says of each domain: dkim, spf, return path, dmarc, dkim with Ed25519; and how far its warm-up is, by step
# and use. The first one is the default sender.
DOMAINS: Final = (
    ("shop.example", (State.OK, State.OK, State.OK, State.OK, State.OK), None),
    ("news.shop.example", (State.OK, State.OK, State.OK, State.MISSING, State.MISSING), (4, 1204)),
    ("outlet.example", (State.MISSING, State.WRONG, State.MISSING, State.UNKNOWN, State.MISSING), None),
)
TWO_SPF_RECORDS: Final = ("v=spf1 include:_spf.example.org ~all", "v=spf1 a -all")


def spf_finding(state: State, value: str) -> domain_records.Finding:
    """What a check of SPF finds that ends so."""
    if state is State.OK:
        return domain_records.Finding(state, f"found {value}", (value,))
    sentence = "more than one SPF record found, which receivers treat as invalid; merge them"
    return domain_records.Finding(State.WRONG, sentence, TWO_SPF_RECORDS)


# API keys with their scopes.
KEYS: Final = {
    "Checkout": frozenset({callers.Permission.SEND}),
    "Reports": frozenset({callers.Permission.SEND, callers.Permission.READ}),
}
USERS: Final = {"grace@shop.example": callers.Role.DEVELOPER, "alan@shop.example": callers.Role.READ_ONLY}
INVITED: Final = "margaret@shop.example"
# What the endpoint of the webhook replies.
OK: Final = 200
SERVER_ERROR: Final = 500
TEMPLATES: Final = (
    (
        "receipt",
        "Your receipt, {{number}}",
        "Hello {{name}},\n\nthank you. You have paid {{amount}}.\n",
        '<h1 style="color: #1f5fbf">Thank you, {{name}}</h1><p>You have paid <b>{{amount}}</b> for {{number}}.</p>',
    ),
    (
        "password-reset",
        "Choose a new password",
        "Hello {{name}},\n\nopen this within an hour: {{link}}\n",
        "<p>Hello {{name}},</p><p><a href='{{link}}'>Choose a new password</a>, within an hour.</p>",
    ),
    ("delivery-note", "Order {{number}} is on its way", "It should be with you on {{day}}.\n", None),
)
# Saved a day ago, so that there is a version to go back to.
NEW_VERSION: Final = (
    "receipt",
    "Your receipt for order {{number}}",
    "Hello {{name}},\n\nthank you. You have paid {{amount}} for order {{number}}.\n",
    '<h1 style="color: #1f5fbf">Thank you, {{name}}</h1><p>You have paid <b>{{amount}}</b> for {{number}}.</p>',
)
