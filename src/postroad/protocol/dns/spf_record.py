"""The SPF record: which hosts may send for the domain of an envelope sender (RFC 7208 sections 4.6 and 5).

A record is parsed as receivers do: one error makes all of it invalid. Terms after `all` are never reached. `merged`
writes the record that a domain with an existing record should publish.
"""

import ipaddress
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.protocol.dns import spf_macros

TYPE: Final = "TXT"
VERSION: Final = "v=spf1"
# Terms that make receivers ask DNS, and how often they do in all (section 4.6.4).
LOOKUP_MECHANISMS: Final = frozenset({"include", "a", "mx", "ptr", "exists"})
MAX_LOOKUPS: Final = 10
# Section 3.4 asks for less than 512 octets; the longest that were seen have two thousand.
MAX_CHARACTERS: Final = 8_192
PASS: Final = "+"  # noqa: S105 - a result of SPF

_IS_SPF: Final = re.compile(r"v=spf1( |\Z)", re.IGNORECASE)
_MODIFIER: Final = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)=([!-~]*)")
_MECHANISM: Final = re.compile(
    r"([+?~-]?)([A-Za-z][A-Za-z0-9_.-]*)(?::([!-~]+?))?((?:/(0|[1-9][0-9]{0,2}))?(?://(0|[1-9][0-9]{0,2}))?)"
)
_ADDRESS: Final = re.compile(r"([+?~-]?)(ip[46]):([0-9A-Fa-f.:]+(?:/(?:0|[1-9][0-9]{0,2}))?)", re.IGNORECASE)
_NAMES_A_DOMAIN: Final = frozenset({"include", "exists"})
_HAS_LENGTHS: Final = frozenset({"a", "mx"})
# Of IPv4 and IPv6: a single address.
_HOST_LENGTHS: Final = (32, 128)

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SpfError(ValueError):
    """A record that receivers refuse (permerror); the message quotes the mistake."""


class Term(msgspec.Struct, frozen=True):
    """A mechanism, or a modifier (then `qualifier` is empty). The name is in lower case, and so is a domain.

    `lengths` are what `a` and `mx` compare of IPv4 and IPv6 addresses, in bits from the left (section 5.6).
    """

    written: str
    qualifier: str
    name: str
    value: str
    network: _Network | None = None
    lengths: tuple[int, int] = _HOST_LENGTHS


class Record(msgspec.Struct, frozen=True):
    """What receivers go through, in order: up to `all`, else on to the record that `redirect` names."""

    mechanisms: tuple[Term, ...]
    redirect: str | None


def is_spf(text: str) -> bool:
    """Whether a TXT record is one of SPF (section 4.5)."""
    return _IS_SPF.match(text) is not None


def parse(text: str) -> Record:
    """A record as receivers read it. Raises SpfError."""
    if not is_spf(text):
        raise SpfError(f"it does not begin with {VERSION}")
    if len(text) > MAX_CHARACTERS:
        raise SpfError(f"it is longer than {MAX_CHARACTERS} characters")
    terms = [parse_term(word) for word in text[len(VERSION) :].split(" ") if word]
    for name in ("redirect", "exp"):
        if sum(term.name == name and not term.qualifier for term in terms) > 1:
            raise SpfError(f"{name}= occurs twice")
    mechanisms = [term for term in terms if term.qualifier]
    ends = [at for at, term in enumerate(mechanisms) if term.name == "all"]
    if ends:
        return Record(tuple(mechanisms[: ends[0] + 1]), None)
    redirects = [term.value for term in terms if term.name == "redirect"]
    return Record(tuple(mechanisms), redirects[0] if redirects else None)


def parse_term(word: str) -> Term:
    """One term. Raises SpfError."""
    address = _ADDRESS.fullmatch(word)
    if address is not None:
        return _address_term(word, address)
    modifier = _MODIFIER.fullmatch(word)
    if modifier is not None:
        name, value = modifier[1].lower(), _domain(modifier[2])
        if name in {"redirect", "exp"} and not spf_macros.is_domain(value):
            raise SpfError(f"{_show(word)} has no domain")
        if not spf_macros.is_text(value):
            raise SpfError(f"{_show(word)} is not a valid SPF term")
        return Term(word, "", name, value)
    mechanism = _MECHANISM.fullmatch(word)
    if mechanism is None:
        raise SpfError(f"{_show(word)} is not a valid SPF term")
    return _mechanism_term(word, mechanism)


def _address_term(word: str, match: re.Match[str]) -> Term:
    name = match[2].lower()
    kind = ipaddress.IPv4Network if name == "ip4" else ipaddress.IPv6Network
    try:
        network: _Network = kind(match[3], strict=False)
    except ValueError:
        raise SpfError(f"{_show(word)} has an address of the wrong family") from None
    return Term(word, match[1] or PASS, name, str(network), network)


def _mechanism_term(word: str, match: re.Match[str]) -> Term:
    name, domain, written_lengths = match[2].lower(), _domain(match[3] or ""), match[4]
    if name not in LOOKUP_MECHANISMS and name != "all":
        raise SpfError(f"{_show(word)} is not a valid SPF term")
    if name in _NAMES_A_DOMAIN and not domain:
        raise SpfError(f"{_show(word)} has no domain")
    if (name == "all" and domain) or (written_lengths and name not in _HAS_LENGTHS):
        raise SpfError(f"{_show(word)} has an argument that {name} does not allow")
    if domain and not spf_macros.is_domain(domain):
        raise SpfError(f"{_show(word)} has no valid domain")
    lengths = (int(match[5] or _HOST_LENGTHS[0]), int(match[6] or _HOST_LENGTHS[1]))
    if lengths[0] > _HOST_LENGTHS[0] or lengths[1] > _HOST_LENGTHS[1]:
        raise SpfError(f"{_show(word)} has a prefix longer than an address")
    return Term(word, match[1] or PASS, name, domain, lengths=lengths)


def _domain(text: str) -> str:
    """In lower case, but for macros: their case has a meaning (section 7.3)."""
    return text if "%" in text else text.lower().removesuffix(".")


def covers(term: Term, wanted: Term) -> bool:
    """Whether a term is the wanted one, or a network that holds it."""
    if term.name != wanted.name or not term.qualifier:
        return False
    if term.network is not None and wanted.network is not None:
        return _holds(term.network, wanted.network)
    return term.value == wanted.value and is_as_broad(term, wanted)


def is_as_broad(term: Term, wanted: Term) -> bool:
    """Whether a term allows at least as much around the address of a host as the wanted one."""
    return all(theirs <= ours for theirs, ours in zip(term.lengths, wanted.lengths, strict=True))


def allows_network(term: Term, addresses: Sequence[str], wanted: Term) -> bool:
    """Whether a term `a` or `mx` whose hosts have these addresses allows all of the wanted network."""
    if wanted.network is None:
        return False
    found = [ipaddress.ip_address(address) for address in addresses]
    lengths = {4: term.lengths[0], 6: term.lengths[1]}
    networks = [ipaddress.ip_network(f"{ip}/{lengths[ip.version]}", strict=False) for ip in found]
    return any(_holds(network, wanted.network) for network in networks)


def _holds(theirs: _Network, ours: _Network) -> bool:
    if isinstance(ours, ipaddress.IPv4Network) and isinstance(theirs, ipaddress.IPv4Network):
        return ours.subnet_of(theirs)
    if isinstance(ours, ipaddress.IPv6Network) and isinstance(theirs, ipaddress.IPv6Network):
        return ours.subnet_of(theirs)
    return False


def new_record(wanted: Sequence[str]) -> str:
    """The record of a domain that has none. `~all`: other senders are suspect, not refused."""
    return " ".join([VERSION, *wanted, "~all"])


def merged(texts: Sequence[str], wanted: Sequence[str]) -> str:
    """One record that merges these and allows the wanted terms too; invalid terms are dropped."""
    ours = [parse_term(word) for word in wanted]
    terms: list[Term] = []
    endings: list[Term] = []
    for text in texts:
        for term in _readable(text):
            ends = term.name == "all" if term.qualifier else term.name == "redirect"
            (endings if ends else terms).append(term)
            if term.name == "all":
                break
    kept = [term for term in terms if term.qualifier == PASS or not any(covers(term, own) for own in ours)]
    missing = [own for own in ours if not any(covers(term, own) for term in kept)]
    words = dict.fromkeys(term.written for term in (*kept, *missing))
    # A record without an end stays so: an `~all` of ours would make others' mail more doubtful than it was.
    return " ".join([VERSION, *words, *(term.written for term in endings[:1])])


def _readable(text: str) -> list[Term]:
    terms = []
    for word in text[len(VERSION) : MAX_CHARACTERS].split(" "):
        try:
            terms.append(parse_term(word))
        except SpfError:
            continue
    return terms


def _show(word: str) -> str:
    return repr(word[:64])
