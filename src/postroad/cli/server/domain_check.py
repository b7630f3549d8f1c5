"""`postroad domain check`: the DNS records of a sender domain."""

from typing import Final
from urllib import parse

import click

from postroad.cli.framework import output, server_command
from postroad.network.http import api_client

PATH: Final = "/v1/domains"
OK: Final = "ok"


@click.command("check", cls=server_command.EitherCommand, local="postroad.cli.server.domains.check")
@click.argument("name", metavar="DOMAIN")
def check(server: api_client.Client, name: str) -> output.Report:
    """Check the DNS records of a domain. The exit code is 1 while a required record is missing or wrong."""
    domain_id = _find(server, name.strip().lower().rstrip("."))
    found = server.call("POST", f"{PATH}/{parse.quote(domain_id, safe='')}/check").get("domain")
    domain = found if isinstance(found, dict) else {}
    records = server_command.objects(domain.get("records"))
    lines = [f"{domain.get('name')}: {'verified' if domain.get('verified') else 'not verified'}"]
    for record in records:
        lines.append(f"{record.get('purpose')}: {record.get('state')}. {record.get('detail')}")
        if record.get("state") != OK and record.get("value") is not None:
            lines.append(f"    {record.get('name')} {record.get('type')} {record.get('value')}")
    is_open = any(one.get("required") and one.get("state") != OK for one in records)
    text = "\n".join(map(output.printable, lines))
    return output.Report(data={"domain": domain}, text=text, exit_code=1 if is_open else 0)


def _find(server: api_client.Client, name: str) -> str:
    """The id of a domain of the account."""
    for page in server_command.pages(server, PATH, limit=100):
        for one in server_command.objects(page.get("domains")):
            if one.get("name") == name:
                return str(one.get("id"))
    raise server_command.CommandError(f"{name} is not a domain of this account")
