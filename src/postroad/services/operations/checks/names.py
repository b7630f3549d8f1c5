"""Host name, resolver and reverse DNS: what receiving servers look up before they accept mail."""

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.network import hostname as network_hostname
from postroad.network.dns import resolver
from postroad.services.domains import domain_dns
from postroad.services.operations.checks import findings

# The root of DNS is signed and answers every resolver, so a failure is the resolver's own.
ROOT: Final = "."
IN_DEVELOPMENT: Final = "no receiving server sees the name of a host for development"
# Answers of a blocklist (RFC 5782 section 2.1), and those by which some refuse to answer a resolver.
_LISTED: Final = ipaddress.ip_network("127.0.0.0/8")
_REFUSED: Final = ipaddress.ip_network("127.255.255.0/24")


async def hostname(given: findings.Subject) -> Sequence[findings.Finding]:
    """The name in EHLO is fully qualified and has an address (RFC 5321 section 4.1.1.1)."""
    name = given.hostname
    if name == network_hostname.DEVELOPMENT:
        return [findings.skipped(IN_DEVELOPMENT)]
    labels = name.lower().rstrip(".").split(".")
    if len(labels) == 1 or labels[-1].isdigit() or f".{'.'.join(labels)}".endswith(domain_dns.NOT_PUBLIC):
        return [
            findings.error(
                f"this host says EHLO {name!r}, which is not a fully qualified name in public DNS",
                "set delivery.hostname to a name of yours, such as mail.example.org, that resolves to this host",
            )
        ]
    answer = await given.dns.addresses(name)
    if isinstance(answer, resolver.Failure):
        return [_no_answer(name, answer)]
    if not answer.records:
        return [
            findings.error(
                f"this host says EHLO {name}, which has no address in DNS",
                f"add an A or AAAA record for {name}, or set delivery.hostname to a name that has one",
            )
        ]
    return [findings.ok(f"this host says EHLO {name}, which resolves")]


async def resolver_works(given: findings.Subject) -> Sequence[findings.Finding]:
    servers = ", ".join(given.settings.delivery.resolvers) or "the name servers of the system"
    answer = await given.dns.mx(ROOT)
    if isinstance(answer, resolver.Failure):
        return [
            findings.error(
                f"DNS does not work with {servers}: {answer.detail}",
                "check delivery.resolvers, or /etc/resolv.conf, and that the firewall lets DNS through",
            )
        ]
    return [findings.ok(f"DNS works with {servers}")]


async def dnssec(given: findings.Subject) -> Sequence[findings.Finding]:
    """The name servers validate DNSSEC, which DANE rests on (RFC 7672 section 2.2)."""
    if not given.settings.delivery.dane:
        return [findings.skipped("delivery.dane is off")]
    answer = await given.dns.mx(ROOT)
    if isinstance(answer, resolver.Failure):
        return [findings.skipped(f"DNS does not work: {answer.detail}")]
    if not answer.is_authentic:
        return [
            findings.error(
                "the resolver does not validate DNSSEC, so delivery.dane has no effect",
                "run a validating resolver such as Unbound on this host and name it in delivery.resolvers",
            )
        ]
    return [findings.ok("the resolver validates DNSSEC")]


async def reverse_dns(given: findings.Subject) -> Sequence[findings.Finding]:
    """The addresses that mail comes from and their names in EHLO resolve to each other."""
    if not given.is_direct:
        return [findings.skipped("all mail goes through upstreams")]
    if given.hostname == network_hostname.DEVELOPMENT and not given.public_sources:
        return [findings.skipped(IN_DEVELOPMENT)]
    by_name: dict[str, list[str]] = {}
    for source in given.public_sources:
        by_name.setdefault(source.hello_name or given.hostname, []).append(_normal(source.address))
    found = await asyncio.gather(
        *(_of_name(given, name, addresses) for name, addresses in (by_name or {given.hostname: []}).items())
    )
    problems = [finding for several in found for finding in several if finding.state is not findings.State.OK]
    return problems or [finding for several in found for finding in several]


async def _of_name(given: findings.Subject, name: str, addresses: Sequence[str]) -> list[findings.Finding]:
    """Whether a name and addresses, or those that the name has, resolve to each other."""
    forward = await given.dns.addresses(name)
    if isinstance(forward, resolver.Failure):
        return [_no_answer(name, forward)]
    if not forward.records:
        return [
            findings.error(
                f"{name} has no address in DNS",
                f"add an A or AAAA record for {name} with the address that mail is sent from",
            )
        ]
    known = [_normal(record) for record in forward.records]
    addresses = addresses or known
    found = await asyncio.gather(
        *(_reverse(given, address, name=name, is_known=address in known) for address in addresses)
    )
    problems = [finding for several in found for finding in several]
    return problems or [findings.ok(f"{name} and {', '.join(addresses)} resolve to each other")]


async def _reverse(given: findings.Subject, address: str, *, name: str, is_known: bool) -> list[findings.Finding]:
    problems = []
    if not is_known:
        kind = "AAAA" if ":" in address else "A"
        problems.append(
            findings.error(
                f"{name} does not resolve to {address}, which mail is sent from",
                f"add an {kind} record for {name} with {address}",
            )
        )
    answer = await given.dns.names(address)
    if isinstance(answer, resolver.Failure):
        return [*problems, _no_answer(address, answer)]
    if not answer.records:
        advice = f"ask its provider to set the PTR record to {name}; many receivers refuse mail without one"
        return [*problems, findings.error(f"{address} has no reverse DNS", advice)]
    if name.lower().rstrip(".") not in answer.records:
        other = ", ".join(answer.records)
        advice = f"ask its provider to set the PTR record to {name}, or set delivery.hostname to {other}"
        return [*problems, findings.warning(f"the reverse DNS of {address} is {other}, not {name}", advice)]
    return problems


async def blocklists(given: findings.Subject) -> Sequence[findings.Finding]:
    """The addresses that mail comes from are on none of the configured blocklists (RFC 5782)."""
    zones = given.settings.doctor.blocklists
    if not zones:
        return [findings.skipped("doctor.blocklists is empty")]
    if not given.is_direct:
        return [findings.skipped("all mail goes through upstreams")]
    addresses = [public_source.address for public_source in given.public_sources]
    if not addresses:
        forward = await given.dns.addresses(given.hostname)
        if isinstance(forward, resolver.Failure):
            return [_no_answer(given.hostname, forward)]
        addresses = list(forward.records)
    pairs = [(address, zone) for address in addresses for zone in zones]
    found = await asyncio.gather(*(_listed(given, address, zone) for address, zone in pairs))
    problems = [finding for finding in found if finding is not None]
    return problems or [findings.ok(f"{', '.join(addresses) or 'no address'}: not listed by {', '.join(zones)}")]


async def _listed(given: findings.Subject, address: str, zone: str) -> findings.Finding | None:
    reverse = ipaddress.ip_address(address).reverse_pointer.removesuffix(".in-addr.arpa").removesuffix(".ip6.arpa")
    answer = await given.dns.addresses(f"{reverse}.{zone}")
    if isinstance(answer, resolver.Failure):
        return _no_answer(zone, answer)
    codes = [ipaddress.ip_address(text) for text in answer.records]
    if any(code in _REFUSED or code not in _LISTED for code in codes):
        return findings.warning(
            f"{zone} does not answer queries from this resolver",
            "use a resolver of your own in delivery.resolvers, or remove the list from doctor.blocklists",
        )
    if codes:
        page = given.settings.doctor.blocklists[zone]
        found = findings.error(f"{address} is listed by {zone}", f"find the cause, then ask for removal: {page}")
        return msgspec.structs.replace(found, listed=(address, zone))
    return None


def _normal(address: str) -> str:
    return str(ipaddress.ip_address(address))


def _no_answer(what: str, failure: resolver.Failure) -> findings.Finding:
    return findings.warning(f"DNS did not answer for {what}: {failure.detail}", "try again later")
