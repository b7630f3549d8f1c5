"""Which upstreams mail goes through: the first rule that matches decides.

A rule matches by account, sender domain and mailbox provider; a condition that is empty matches everything. The
upstreams of a rule are in the order to try. The provider of a recipient domain is known only when its MX records are,
so a caller asks without it first.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

# The built-in upstream: the mail hosts of the recipient's domain.
DIRECT: Final = "direct"


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `[[routes]]`."""

    upstreams: tuple[str, ...]
    accounts: tuple[str, ...] = ()
    sender_domains: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()

    @property
    def matches_everything(self) -> bool:
        """Whether no rule after it is ever used."""
        return not (self.accounts or self.sender_domains or self.providers)


def choose(
    rules: Sequence[Rule], *, account_id: str, sender_domain: str, provider: str | None = None
) -> tuple[str, ...] | None:
    """The upstreams of the first rule that matches; None when that depends on the provider, which is not given."""
    for rule in rules:
        if rule.accounts and account_id not in rule.accounts:
            continue
        if rule.sender_domains and sender_domain not in rule.sender_domains:
            continue
        if rule.providers and provider is None:
            return None
        if not rule.providers or provider in rule.providers:
            return rule.upstreams
    return (DIRECT,)


def complete(rules: Iterable[Rule], *, names: Sequence[str]) -> tuple[Rule, ...]:
    """The rules with the one for all other mail: the first upstream, or direct delivery where there is none."""
    return (*rules, Rule(upstreams=tuple(names[:1]) or (DIRECT,)))


def named_sender_domains(rules: Iterable[Rule]) -> frozenset[str]:
    """The sender domains that make a difference."""
    return frozenset(domain for rule in rules for domain in rule.sender_domains)
