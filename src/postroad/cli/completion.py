"""`postroad completion`: the script that lets a shell complete commands and options."""

import click
from click import shell_completion

from postroad import cli
from postroad.cli.framework import server_command

VARIABLE = "_POSTROAD_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")), metavar="SHELL")
def completion(shell: str) -> None:
    """Print the completion script of a shell: bash, zsh or fish."""
    found = shell_completion.get_completion_class(shell)
    if found is None:
        raise server_command.CommandError(f"there is no completion for {shell}")
    complete = found(cli.main, {}, "postroad", VARIABLE)
    # Its `source` would start a bash to check the version of that, which need not be the user's.
    click.echo(complete.source_template % complete.source_vars())
