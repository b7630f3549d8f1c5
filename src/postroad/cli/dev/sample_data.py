"""What the sample week of `postroad dev` is made of: who sends what to whom, and what the destinations reply."""

from importlib import resources
from typing import Final

import msgspec

from postroad import errors
from postroad.model.domains import domain_records
from postroad.model.mail import simulated_outcomes, statuses
from postroad.model.people import callers

State = domain_records.RecordState
Behaviour = simulated_outcomes.ProviderBehaviour

WEEKEND_SHARE: Final = 0.35


class Destination(msgspec.Struct, frozen=True):
    """Where mail goes, and how often it is deferred, bounces and fails there, in a thousand."""

    domain: str
    provider_queue: str
    host: str
    address: str
    weight: int
    deferred: int
    bounced: int
    failed: int
    provider: simulated_outcomes.SimulatedProvider


class Kind(msgspec.Struct, frozen=True):
    """What is sent, by whom, how often."""

    sender: str
    subject: str
    text: str
    html: str
    tags: tuple[str, ...]
    source: statuses.Source
    weight: int


class Template(msgspec.Struct, frozen=True):
    """A version of a template."""

    alias: str
    starter: str
    subject: str | None = None


class Week(msgspec.Struct, frozen=True):
    """The contents of sample_week.toml."""

    hours: list[int]
    first_names: list[str]
    last_names: list[str]
    mistyped: list[str]
    destinations: list[Destination]
    kinds: list[Kind]
    templates: list[Template]
    new_version: Template


WEEK: Final = msgspec.toml.decode((resources.files(__package__) / "sample_week.toml").read_bytes(), type=Week)
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
CHECKOUT: Final = "Checkout"
DEPLOYMENT: Final = "Deployment"
KEYS: Final = {
    CHECKOUT: frozenset({callers.Scope.SEND}),
    "Reports": frozenset({callers.Scope.SEND, callers.Scope.READ}),
    DEPLOYMENT: frozenset({callers.Scope.SEND, callers.Scope.TEAM}),
}
# A test key that the last one has created.
STAGING: Final = "Staging"
STAGING_BODY: Final = b'{"name": "Staging", "scopes": ["send"], "mode": "test"}'
USERS: Final = {"grace@shop.example": callers.Role.DEVELOPER, "alan@shop.example": callers.Role.READ_ONLY}
INVITED: Final = "margaret@shop.example"
# Requests of Checkout that were refused: method, path, error and body.
REQUESTS: Final = (
    (
        "POST",
        "/emails",
        errors.InvalidRequest("subjct: unknown member; did you mean 'subject'?"),
        b'{"from": "orders@shop.example", "to": ["ada@gmail.com"], "subjct": "Your order", "text": "Thank you."}',
    ),
    (
        "GET",
        "/v1/domains",
        errors.Unauthorized(
            "Authorization: this API key does not have the scope 'domains'; use a key that has it, or a login token "
            "from /v1/auth/login"
        ),
        b"",
    ),
    (
        "POST",
        "/emails",
        errors.Forbidden("from: outlet.example is not verified yet; publish its DKIM record, then check the domain"),
        b'{"from": "sale@outlet.example", "to": ["grace@outlook.com"], "subject": "Sale", "html": "<p>50 % off</p>"}',
    ),
)
# What the endpoint of the webhook replies.
OK: Final = 200
SERVER_ERROR: Final = 500
