"""The mailbox provider of a mail host, and the rules that choose upstreams and source addresses."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

OTHERS: Final = "others"
PROVIDERS: Final = ("google", "microsoft", "yahoo", "apple", OTHERS)
# The same for people. Hosts of `others` have names of their own.
NAMES: Final = {"google": "Google", "microsoft": "Microsoft", "yahoo": "Yahoo", "apple": "Apple"}
# Provider queues of upstreams; no name of a host begins like this.
UPSTREAM_PREFIX: Final = "upstream:"
# The provider queue of test mail, which is counted nowhere.
SIMULATOR: Final = "simulator"
# The upstream of `postroad dev`.
DEV_SIMULATOR: Final = "dev_simulator"
_DEV_UPSTREAM: Final = UPSTREAM_PREFIX + DEV_SIMULATOR
# The label of an outcome without a provider queue: decided without an attempt, or no route was found.
NO_PROVIDER: Final = "none"

SUFFIXES: Final = {
    "google.com": "google",
    "googlemail.com": "google",
    "psmtp.com": "google",
    "outlook.com": "microsoft",
    "outlook.cn": "microsoft",
    "hotmail.com": "microsoft",
    "mx.microsoft": "microsoft",
    "office365.us": "microsoft",
    "yahoodns.net": "yahoo",
    "yahoo.com": "yahoo",
    "icloud.com": "apple",
    "apple.com": "apple",
    "me.com": "apple",
}

# Domains of the providers' own mailboxes. The simulator of `postroad dev` has no DNS to ask for their mail hosts.
MAILBOX_DOMAINS: Final = {
    "gmail.com": "google",
    "googlemail.com": "google",
    "outlook.com": "microsoft",
    "hotmail.com": "microsoft",
    "live.com": "microsoft",
    "msn.com": "microsoft",
    "yahoo.com": "yahoo",
    "aol.com": "yahoo",
    "icloud.com": "apple",
    "me.com": "apple",
    "mac.com": "apple",
}


def title_of(provider_queue: str) -> str:
    """A provider queue as people read it: that of a host has the host's name."""
    if provider_queue.startswith(UPSTREAM_PREFIX):
        return f"Upstream {provider_queue.removeprefix(UPSTREAM_PREFIX)}"
    return "All others" if provider_queue == OTHERS else NAMES.get(provider_queue, provider_queue)


def of_host(name: str) -> str:
    """The provider behind one mail host; the name is in lower case."""
    labels = name.split(".")
    for start in range(len(labels) - 1):
        provider = SUFFIXES.get(".".join(labels[start:]))
        if provider is not None:
            return provider
    return OTHERS


def of_hosts(names: Iterable[str]) -> str:
    """The provider of all of them. A third-party filter in front of a provider's mailboxes is not the provider."""
    found = {of_host(name) for name in names}
    return found.pop() if len(found) == 1 else OTHERS


def upstream_queue(name: str) -> str:
    return f"{UPSTREAM_PREFIX}{name}"


def attributed_queue(provider_queue: str, domain: str) -> str:
    """The provider queue that an attempt is recorded with: behind the simulator of `postroad dev`, the provider's."""
    if provider_queue != _DEV_UPSTREAM:
        return provider_queue
    return MAILBOX_DOMAINS.get(domain, OTHERS)


def label_of(provider_queue: str) -> str:
    """The provider that a provider queue is counted under; queues of unlisted hosts count as `others`."""
    if not provider_queue:
        return NO_PROVIDER
    is_named = provider_queue in PROVIDERS or provider_queue.startswith(UPSTREAM_PREFIX)
    return provider_queue if is_named else OTHERS


# Which upstreams and which source addresses mail goes through: the first rule that matches decides.
#
# A rule matches by account, sender domain, tag and mailbox provider; a condition that is empty matches everything. The
# upstreams of a rule are in the order to try; its pool is that of the source addresses. The provider of a recipient
# domain is known only when its MX records are, so a caller asks without it first.

# The built-in upstream: the mail hosts of the recipient's domain.
DIRECT: Final = "direct"
# The pool of mail that no rule assigns.
DEFAULT_POOL: Final = "default"


class RouteRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `[[routes]]`. Empty upstreams, or an empty pool, are those of mail that no rule matches."""

    upstreams: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    sender_domains: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    pool: str = ""

    @property
    def matches_everything(self) -> bool:
        """Whether no rule after it is ever used."""
        return not (self.accounts or self.sender_domains or self.tags or self.providers)


class ChosenRoute(msgspec.Struct, frozen=True):
    """What a rule decides."""

    upstreams: tuple[str, ...]
    pool: str


def choose_route(
    rules: Sequence[RouteRule], *, account_id: str, sender_domain: str, tag: str = "", provider: str | None = None
) -> ChosenRoute | None:
    """What the first rule that matches decides; None when that depends on the provider, which is not given."""
    for rule in rules:
        if rule.accounts and account_id not in rule.accounts:
            continue
        if rule.sender_domains and sender_domain not in rule.sender_domains:
            continue
        if rule.tags and tag not in rule.tags:
            continue
        if rule.providers and provider is None:
            return None
        if not rule.providers or provider in rule.providers:
            return ChosenRoute(rule.upstreams, rule.pool)
    return ChosenRoute((DIRECT,), DEFAULT_POOL)


def complete_routes(rules: Iterable[RouteRule], *, names: Sequence[str]) -> tuple[RouteRule, ...]:
    """The rules with the one for all other mail: the first upstream, or direct delivery where there is none."""
    others = RouteRule(upstreams=tuple(names[:1]) or (DIRECT,), pool=DEFAULT_POOL)
    filled = (
        msgspec.structs.replace(rule, upstreams=rule.upstreams or others.upstreams, pool=rule.pool or others.pool)
        for rule in rules
    )
    return (*filled, others)


class RouteConditions(msgspec.Struct, frozen=True):
    """The sender domains and the tags that make a difference, tags in the order of the rules."""

    sender_domains: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()

    @property
    def are_any(self) -> bool:
        return bool(self.sender_domains or self.tags)

    def of_message(self, sender_domain: str, tags: Sequence[str]) -> tuple[str, str]:
        """The sender domain and the tag of a message, each empty where it makes no difference."""
        named = sender_domain if sender_domain in self.sender_domains else ""
        return named, next((tag for tag in self.tags if tag in tags), "")


def route_conditions(rules: Iterable[RouteRule]) -> RouteConditions:
    rules = tuple(rules)
    return RouteConditions(
        frozenset(domain for rule in rules for domain in rule.sender_domains),
        tuple(dict.fromkeys(tag for rule in rules for tag in rule.tags)),
    )
