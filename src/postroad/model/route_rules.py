"""Which upstreams and which source addresses mail goes through: the first rule that matches decides.

A rule matches by account, sender domain, tag and mailbox provider; a condition that is empty matches everything. The
upstreams of a rule are in the order to try; its pool is that of the source addresses. The provider of a recipient
domain is known only when its MX records are, so a caller asks without it first.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

# The built-in upstream: the mail hosts of the recipient's domain.
DIRECT: Final = "direct"
# The pool of mail that no rule assigns.
DEFAULT_POOL: Final = "default"


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


class Chosen(msgspec.Struct, frozen=True):
    """What a rule decides."""

    upstreams: tuple[str, ...]
    pool: str


def choose(
    rules: Sequence[Rule], *, account_id: str, sender_domain: str, tag: str = "", provider: str | None = None
) -> Chosen | None:
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
            return Chosen(rule.upstreams, rule.pool)
    return Chosen((DIRECT,), DEFAULT_POOL)


def complete(rules: Iterable[Rule], *, names: Sequence[str]) -> tuple[Rule, ...]:
    """The rules with the one for all other mail: the first upstream, or direct delivery where there is none."""
    others = Rule(upstreams=tuple(names[:1]) or (DIRECT,), pool=DEFAULT_POOL)
    filled = (
        msgspec.structs.replace(rule, upstreams=rule.upstreams or others.upstreams, pool=rule.pool or others.pool)
        for rule in rules
    )
    return (*filled, others)


class Conditions(msgspec.Struct, frozen=True):
    """The sender domains and the tags that make a difference, tags in the order of the rules."""

    sender_domains: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()

    @property
    def are_any(self) -> bool:
        """Whether anything of a message makes a difference."""
        return bool(self.sender_domains or self.tags)

    def of_message(self, sender_domain: str, tags: Sequence[str]) -> tuple[str, str]:
        """The sender domain and the tag of a message, each empty where it makes no difference."""
        named = sender_domain if sender_domain in self.sender_domains else ""
        return named, next((tag for tag in self.tags if tag in tags), "")


NO_CONDITIONS: Final = Conditions()


def conditions(rules: Iterable[Rule]) -> Conditions:
    """What the rules ask for of a message."""
    rules = tuple(rules)
    return Conditions(
        frozenset(domain for rule in rules for domain in rule.sender_domains),
        tuple(dict.fromkeys(tag for rule in rules for tag in rule.tags)),
    )
