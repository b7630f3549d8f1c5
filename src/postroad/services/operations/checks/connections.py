"""Connections: the addresses to send from, port 25 outbound, our own listeners and the return path."""

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import Final

import msgspec

from postroad import config
from postroad.network import probe
from postroad.network.dns import resolver
from postroad.services.operations.checks import findings
from postroad.storage.operations import certificates


class Protocol(Enum):
    HTTP = "http"
    SMTP = "smtp"
    SMTP_TLS = "smtp with implicit TLS"


class Listener(msgspec.Struct, frozen=True):
    """A listener: the setting of its address, its protocol, and its role; empty if every process may have one."""

    setting: str
    protocol: Protocol
    role: str

    @property
    def section(self) -> str:
        return self.setting.partition(".")[0]

    def endpoint(self, settings: config.Settings) -> config.Endpoint | None:
        """Where to reach it from this host; None if it is off, or if the system chooses its port."""
        text = getattr(getattr(settings, self.section), self.setting.partition(".")[2])
        if not text:
            return None
        endpoint = config.endpoint(text, name=self.setting)
        return probe.local_end(endpoint) if endpoint.port else None


LISTENERS: Final = (
    Listener("http.listen", Protocol.HTTP, "api"),
    Listener("metrics.listen", Protocol.HTTP, ""),
    Listener("submission.listen", Protocol.SMTP, "submission"),
    Listener("submission.tls_listen", Protocol.SMTP_TLS, "submission"),
    Listener("inbound.listen", Protocol.SMTP, "inbound"),
)


def expected(given: findings.Subject) -> Sequence[tuple[Listener, config.Endpoint]]:
    """The listeners that should answer on this host now."""
    if given.store is not None and not given.here:
        return []
    every = [(listener, listener.endpoint(given.settings)) for listener in LISTENERS]
    return [
        (listener, where)
        for listener, where in every
        if where and (not listener.role or given.runs_here(listener.role))
    ]


def host_warnings(settings: config.Settings) -> list[str]:
    """What in the settings does not fit this host, for those who check them before a start; `doctor` looks closer."""
    name = settings.delivery.hostname
    warnings = []
    if name and "." not in name.rstrip("."):
        warnings.append(
            f"delivery.hostname: {name!r} is not a fully qualified name, and many servers refuse mail from it; "
            "set it to a name such as mail.example.org that resolves to this host"
        )
    warnings += [
        f"sources.{source.name}.address: no network interface of this host has {source.address}; "
        "add it to one, unless another host sends from it"
        for source in settings.sources
        if not probe.can_bind(source.address)
    ]
    return warnings


async def source_addresses(given: findings.Subject) -> Sequence[findings.Finding]:
    """This host has a source address. Others may be those of other hosts, which have the same settings."""
    wanted = [source.address for source in given.settings.sources]
    if not wanted:
        return [findings.skipped("there are no [[sources]]: the system chooses the address")]
    if not given.runs_here("delivery"):
        return [findings.skipped("this host delivers no mail")]
    found = [address for address in wanted if probe.can_bind(address)]
    if not found:
        return [
            findings.error(
                f"this host has no address of [[sources]]: {', '.join(wanted)}; no mail leaves it",
                "add one to a network interface, or to [[sources]] an address that this host has",
            )
        ]
    return [findings.ok(f"this host has {', '.join(found)}")]


async def port_25(given: findings.Subject) -> Sequence[findings.Finding]:
    """Connections to mail servers get through."""
    text = given.settings.doctor.probe_host
    if not text:
        return [findings.skipped("doctor.probe_host is empty")]
    if not given.is_direct:
        return [findings.skipped("all mail goes through upstreams")]
    host, port = config.endpoint(text, name="doctor.probe_host")
    answer = await given.dns.addresses(host) if not config.is_address(host) else resolver.Answer((host,), ttl=0)
    if isinstance(answer, resolver.Failure):
        return [findings.skipped(f"DNS did not answer for {host}: {answer.detail}")]
    sources: Sequence[str | None] = [
        source.address for source in given.settings.sources if probe.can_bind(source.address)
    ]
    tries = [
        _probe(given, config.Endpoint(address, port), host=host, source=source)
        for source in sources or (None,)
        if (address := _same_family(answer.records, source)) is not None
    ]
    if not tries:
        return [findings.skipped(f"{host} has no address that this host could connect to")]
    found = [finding for finding in await asyncio.gather(*tries) if finding is not None]
    return found or [findings.ok(f"{host} was reached on port {port}")]


def _same_family(addresses: Sequence[str], source: str | None) -> str | None:
    """The first address that a source address can reach. Many hosts have no IPv6: without a source, IPv4 is first."""
    if source is None:
        return min(addresses, key=lambda address: ":" in address, default=None)
    return next((address for address in addresses if (":" in address) == (":" in source)), None)


async def _probe(
    given: findings.Subject, endpoint: config.Endpoint, *, host: str, source: str | None
) -> findings.Finding | None:
    try:
        await probe.smtp(endpoint, host=host, hello_name=given.hostname, source_address=source)
    except probe.ProbeFailed as problem:
        origin = f" from {source}" if source else ""
        if problem.has_answered:
            return findings.warning(
                f"the mail server {host} was reached{origin}, but refused the session: {problem}",
                "read its reply; the checks hostname, reverse_dns and blocklists show the usual causes",
            )
        return findings.error(
            f"mail servers cannot be reached{origin}: {problem}",
            "ask your provider to open outbound port 25, or send through an upstream",
        )
    return None


async def listeners(given: findings.Subject) -> Sequence[findings.Finding]:
    """The listeners of this host answer, and offer the TLS that they are configured for."""
    wanted = expected(given)
    told = await asyncio.gather(*(_listener(given, *pair) for pair in wanted))
    problems = [(listener, problem) for (listener, _), problem in zip(wanted, told, strict=True) if problem is not None]
    found = [problem for _, problem in problems]
    # Without a database it is not known whether the service runs.
    if len(found) == len(wanted) and (given.store is None or not given.here):
        return [findings.skipped("the service is not running on this host")]
    if not wanted:
        return [findings.skipped("no role on this host has a listener")]
    ordered = config.tls_sections(given.settings) if given.settings.acme.names else ()
    others = [problem for listener, problem in problems if listener.section not in ordered]
    if len(others) < len(found) and not await _is_obtained(given):
        return [*others, findings.skipped("the listeners with TLS wait for the first certificate; see certificates")]
    return found or [
        findings.ok(f"{', '.join(f'{listener.setting} ({where})' for listener, where in wanted)}: reachable")
    ]


async def _is_obtained(given: findings.Subject) -> bool:
    """Whether there has been a certificate by ACME, without which listeners close connections or offer no STARTTLS."""
    if given.store is None:
        return True
    async with given.store.reading() as tx:
        stored = await certificates.find(
            tx, certificates.key_of(given.settings.acme.directory, given.settings.acme.names)
        )
    return stored is not None and bool(stored.issued_at)


async def _listener(given: findings.Subject, listener: Listener, where: config.Endpoint) -> findings.Finding | None:
    is_tls = listener.section in config.tls_sections(given.settings)
    try:
        match listener.protocol:
            case Protocol.HTTP:
                status = await probe.http_status(where, "/healthz", is_tls=is_tls)
                if status != 200:  # noqa: PLR2004 - OK
                    return findings.error(f"{listener.setting} ({where}) answers /healthz with {status}", "see the log")
            case Protocol.SMTP_TLS:
                await probe.certificate(where, server_name=given.hostname)
            case Protocol.SMTP:
                answer = await probe.smtp(where, host=given.hostname, hello_name=given.hostname, starttls=is_tls)
                if is_tls and answer.certificate is None:
                    return findings.error(
                        f"{listener.setting} ({where}) does not offer STARTTLS, although it has a certificate",
                        "see the log for the reason; no other program may listen on this port",
                    )
    except probe.ProbeFailed as problem:
        return findings.error(
            f"{listener.setting} ({where}) does not answer: {problem}",
            "see the log, and check the firewall of this host",
        )
    return None


async def return_path(given: findings.Subject) -> Sequence[findings.Finding]:
    """Bounces to the return path reach a host where the inbound role answers."""
    domain = given.settings.delivery.return_path_domain
    if not domain:
        return [
            findings.skipped("delivery.return_path_domain is empty: 'postroad domain check' checks each sender domain")
        ]
    answer = await given.dns.mx(domain)
    if isinstance(answer, resolver.Failure):
        return [findings.warning(f"DNS did not answer for the MX of {domain}: {answer.detail}", "try again later")]
    hosts = [mx.host for mx in sorted(answer.records, key=lambda mx: mx.preference) if mx.host]
    if not hosts:
        return [
            findings.error(
                f"{domain}, the domain of return paths, has no MX record, so bounces are lost",
                f"add an MX record for {domain} with the name of a host that runs the inbound role",
            )
        ]
    found = [
        finding for finding in await asyncio.gather(*(_inbound(given, host) for host in hosts)) if finding is not None
    ]
    return found or [findings.ok(f"mail to {domain} reaches {', '.join(hosts)}")]


async def _inbound(given: findings.Subject, host: str) -> findings.Finding | None:
    answer = await given.dns.addresses(host)
    if isinstance(answer, resolver.Failure):
        return findings.warning(f"DNS did not answer for {host}: {answer.detail}", "try again later")
    address = _same_family(answer.records, None)
    if address is None:
        return findings.error(f"the mail host {host} of the return path has no address", f"add an A record for {host}")
    endpoint = config.Endpoint(address, given.settings.delivery.mx_port)
    try:
        await probe.smtp(endpoint, host=host, hello_name=given.hostname)
    except probe.ProbeFailed as problem:
        return findings.warning(
            f"the mail host {host} of the return path does not answer: {problem}",
            "run the inbound role there and open port 25; behind a router, a host may not reach its own address",
        )
    return None
