"""`postroad mcp`: the tools of a server for an agent that starts this command."""

import asyncio
import os
from typing import Final

import click

KEY_VARIABLE: Final = "POSTROAD_API_KEY"


@click.command("mcp")
@click.option("--url", envvar="POSTROAD_URL", required=True, show_envvar=True, help="The URL of the server.")
def mcp(url: str) -> None:
    """Serve the tools for AI agents on standard input and output, with an API key.

    The key is in the variable POSTROAD_API_KEY; the tools can do only what it may do. The agent starts this command and
    ends it by closing its input.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        raise click.UsageError(f"no API key: set {KEY_VARIABLE} in the environment of this command")
    if not url.startswith(("http://", "https://")):
        raise click.UsageError("the URL must begin with https:// or http://; set POSTROAD_URL or --url")
    from postroad_mcp import remote_api  # noqa: PLC0415 - the SDK takes a second to import

    asyncio.run(remote_api.serve_stdio(url, key))
