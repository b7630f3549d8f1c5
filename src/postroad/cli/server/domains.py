"""`postroad domain`: the sender domains of an account, their warm-up and DNS records as zone file lines.

They are requests to the API, except what it has for nobody: to verify a domain without DNS, to exempt it from warm-up,
and to print the operator's zone. Then the services are asked.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib import parse

import click

from postroad import errors
from postroad.cli.framework import output, server_command
from postroad.network.http import api_client
from postroad.protocol.dns import tag_lists

if TYPE_CHECKING:
    from postroad.cli.framework.local_server import LocalServer

PATH: Final = "/v1/domains"
OK: Final = "ok"
TITLES: Final = {
    "dkim": "DKIM",
    "dkim_next": "DKIM, next key",
    "spf": "SPF",
    "return_path": "Return path",
    "dmarc": "DMARC",
    "dkim_ed25519": "DKIM with Ed25519",
    "dkim_ed25519_next": "DKIM with Ed25519, next key",
    "dkim_old": "DKIM, old key",
    "dkim_ed25519_old": "DKIM with Ed25519, old key",
}
OLD_KEYS: Final = ("dkim_old", "dkim_ed25519_old")
OPTIONAL: Final = ("dkim_ed25519", "dkim_ed25519_next")
NAME: Final = click.argument("name", metavar="DOMAIN")


def status(domain: Mapping[str, Any]) -> str:
    failing_since = domain.get("failing_since")
    if not domain.get("verified"):
        state = "not verified" if failing_since is None else "no longer verified"
    else:
        state = "verified by DNS" if domain.get("verified_by") == "dns" else "verified"
    failing = "" if failing_since is None else f" (DNS check failing since {failing_since})"
    return f"{domain.get('name')} ({domain.get('id')}): {state}{failing}"


def warmup_text(view: Mapping[str, Any] | None) -> str:
    if view is None or view.get("cap") is None:
        return "Warm-up: not required."
    cap, tomorrow = view["cap"], view.get("tomorrow")
    today = f"Warm-up: {view.get('used')} of {cap} recipients used today"
    if tomorrow == cap:
        return f"{today}. The limit grows the day after you use at least half of it."
    return f"{today}; tomorrow {'there is no limit' if tomorrow is None else f'the limit is {tomorrow}'}."


def records_text(records: Sequence[Mapping[str, Any]], *, only_incomplete: bool) -> str:
    """The records and their check results. `only_incomplete` omits the zone lines of correct records."""
    lines = []
    for record in records:
        detail = str(record.get("detail"))
        detail = f"{detail[:1].upper()}{detail[1:]}{'' if detail.endswith('.') else '.'}"
        purpose = str(record.get("purpose"))
        lines.append(f"{TITLES.get(purpose, purpose)}{_importance(record)}: {record.get('state')}. {detail}")
        if record.get("value") is not None and not (only_incomplete and record.get("state") == OK):
            lines.append(f"    {zone_line(record)}")
    return "\n".join(lines)


def _importance(record: Mapping[str, Any]) -> str:
    if record.get("managed"):
        return " (managed by the operator)"
    if record.get("purpose") in OLD_KEYS or record.get("required"):
        return ""
    return " (optional)" if record.get("purpose") in OPTIONAL else " (recommended)"


def zone_line(record: Mapping[str, Any]) -> str:
    """The record as a line of a zone file (RFC 1035 section 5.1)."""
    name, value = str(record.get("name")), str(record.get("value") or "")
    if record.get("type") == tag_lists.TYPE:
        return tag_lists.zone_line(name, value)
    return f"{name}. IN {record.get('type')} {value}."


@click.command("add", cls=server_command.AccountCommand)
@NAME
@click.option("--verified", is_flag=True, help="Mark it as verified without a DNS check.")
def add(server: "LocalServer", *, name: str, verified: bool) -> output.Report:
    """Add a sender domain to an account."""
    from postroad.mail.signing import domain_keys  # noqa: PLC0415
    from postroad.services.domains import domain_registry  # noqa: PLC0415

    with _name_owner_on_conflict(server, name):
        added = server.ask(lambda ctx: domain_registry.add(ctx, server.account.id, name, verified=verified))
    server.ask(lambda ctx: domain_keys.keys(ctx, added))
    return _report(server, added.id)


@click.command("list", cls=server_command.AccountCommand)
def show_list(server: "LocalServer") -> output.Report:
    """List an account's domains."""
    listed = server_command.all_rows(server, PATH, "domains")
    rows = [
        (domain["id"], domain["name"], domain["verified_at"], (domain["dkim"] or {}).get("selector"))
        for domain in listed
    ]
    text = output.table(["id", "domain", "verified", "selector"], rows, empty="There are no domains.")
    return output.Report(data={"domains": [server.owned(domain) for domain in listed]}, text=text)


@click.command("show", cls=server_command.AccountCommand)
@NAME
def show(server: "LocalServer", name: str) -> output.Report:
    """Show a domain with its DNS records and warm-up."""
    return _report(server, _find(server, name)["id"])


@click.command("verify", cls=server_command.AccountCommand)
@NAME
def verify(server: "LocalServer", name: str) -> output.Report:
    """Mark a domain as verified without a DNS check. Later checks do not change that."""
    from postroad.services.domains import domain_registry  # noqa: PLC0415
    from postroad.storage.mail import domains  # noqa: PLC0415

    domain_id = _find(server, name)["id"]
    with _name_owner_on_conflict(server, name):
        server.ask(lambda ctx: domain_registry.verify(ctx, server.account.id, domain_id, by=domains.OPERATOR))
    return _report(server, domain_id)


@click.command("check", cls=server_command.ServerCommand)
@NAME
def check(server: api_client.Client, name: str) -> output.Report:
    """Check the DNS records of a domain. The exit code is 1 while a required record is missing or wrong."""
    found = server.call("POST", f"{PATH}/{parse.quote(str(_find(server, name).get('id')), safe='')}/check").get(
        "domain"
    )
    domain = found if isinstance(found, dict) else {}
    is_open = any(
        record.get("required") and record.get("state") != OK for record in server_command.objects(domain.get("records"))
    )
    text = "\n".join(map(output.printable, text_of(domain, only_incomplete=True).splitlines()))
    return output.Report(data={"domain": domain}, text=text, exit_code=1 if is_open else 0)


def _find(server: api_client.Client, name: str) -> dict[str, Any]:
    """A domain of the account, as lists show it, by any spelling of its name."""
    wanted = name.strip().lower().rstrip(".")
    if not wanted.isascii():
        from postroad.protocol.mime import address  # noqa: PLC0415 - it takes longer than the request

        wanted = address.parse_domain(wanted)
    for page in server_command.pages(server, PATH, limit=server_command.PAGE):
        for domain in server_command.objects(page.get("domains")):
            if domain.get("name") == wanted:
                return domain
    raise server_command.CommandError(f"{wanted} is not registered by this account")


@click.command("rotate-key", cls=server_command.AccountCommand)
@NAME
def rotate_key(server: "LocalServer", name: str) -> output.Report:
    """Create a new DKIM key for a domain. It signs as soon as its record is in DNS."""
    domain = _find(server, name)
    found = server.call("POST", f"{PATH}/{domain['id']}/rotate-key")["domain"]
    # In the zone of the operator, the aliases of customers stay as they are.
    publish = (
        "publish the output of 'postroad domain records'"
        if server.settings.domains.key_zone
        else "publish the record of the next key, and keep the current one"
    )
    check = f"postroad domain check {domain['name']}"
    steps = f"Next: {publish}; then run '{check}'. The new key signs once the check finds it."
    return output.Report(data={"domain": server.owned(found)}, text=f"{text_of(found)}\n{steps}")


@click.command("records", cls=server_command.HostCommand)
def zone_records(server: "LocalServer") -> output.Report:
    """Print the DKIM records of all domains in zone-file format, for domains.key_zone."""
    from postroad.services.domains import key_rotation  # noqa: PLC0415

    records = server.ask(key_rotation.zone_records)
    lines = [tag_lists.zone_line(record.name, record.value) for record in records]
    return output.Report(data={"records": [dataclasses.asdict(record) for record in records]}, text="\n".join(lines))


@click.command("warm", cls=server_command.AccountCommand)
@NAME
@click.option("--off", is_flag=True, help="Resume the warm-up where it stopped.")
def warm(server: "LocalServer", *, name: str, off: bool) -> output.Report:
    """Exempt a domain with an established reputation from warm-up."""
    from postroad.services.domains import domain_registry  # noqa: PLC0415

    domain_id = _find(server, name)["id"]
    server.ask(lambda ctx: domain_registry.set_warm(ctx, server.account.id, domain_id, warm=not off))
    return _report(server, domain_id)


@click.command("remove", cls=server_command.AccountCommand)
@NAME
@click.option("--yes", is_flag=True, help="Confirm the removal of a verified domain.")
def remove(server: "LocalServer", *, name: str, yes: bool) -> output.Report:
    """Remove a domain and its DKIM key from an account. Another account can then verify it."""
    domain, account = _find(server, name), server.account
    if domain["verified"] and not yes:
        raise errors.InvalidRequest(
            f"{domain['name']} is verified, and {account.name} ({account.id}) can no longer send from it; "
            "add --yes to confirm"
        )
    server.call("DELETE", f"{PATH}/{domain['id']}")
    text = f"{domain['name']} and its DKIM key are removed from the account."
    return output.Report(data={"removed": domain["name"]}, text=text)


@contextlib.contextmanager
def _name_owner_on_conflict(server: "LocalServer", name: str) -> Iterator[None]:
    """Name the account that has verified the domain, in a conflict."""
    from postroad.services.domains import domain_registry  # noqa: PLC0415

    try:
        yield
    except errors.Conflict as problem:
        owner_id = server.ask(lambda ctx: domain_registry.verified_owner(ctx, name))
        if owner_id in (None, server.account.id):
            raise
        owner = server.named_account(owner_id)
        msg = f"{problem.message}: {owner.name} ({owner.id}); remove it there with 'postroad domain remove'"
        raise errors.Conflict(msg) from problem


def _report(server: "LocalServer", domain_id: str) -> output.Report:
    found = server.get(f"{PATH}/{domain_id}")["domain"]
    return output.Report(data={"domain": server.owned(found)}, text=text_of(found))


def text_of(domain: Mapping[str, Any], *, only_incomplete: bool = False) -> str:
    """A domain as the API shows it, for people."""
    records = server_command.objects(domain.get("records"))
    lines = [status(domain), warmup_text(domain.get("warmup")), "DNS records:"]
    return "\n".join([*lines, records_text(records, only_incomplete=only_incomplete)])
