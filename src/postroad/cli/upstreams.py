"""`postroad upstream test`: whether an upstream can be used, and what to do if it cannot."""

from typing import Final

import click

from postroad import config
from postroad.cli import command, output
from postroad.delivery import upstream_probe

_PARAMETERS: Final[list[click.Parameter]] = [
    click.Argument(["name"]),
    click.Option(["--to"], metavar="ADDRESS", help="Send a test message to this address."),
    click.Option(["--from", "sender"], default="", metavar="ADDRESS", help="Its sender. Default: postmaster@HOSTNAME."),
]


@click.command("test", cls=command.SettingsCommand, params=_PARAMETERS)
async def test(settings: config.Settings, *, name: str, to: str | None, sender: str) -> output.Report:
    """Connect to an upstream and log in, and send a test message if an address is given."""
    upstream = next((one for one in settings.upstreams if one.name == name), None)
    if upstream is None:
        known = ", ".join(one.name for one in settings.upstreams) or "none"
        raise config.ConfigError(f"there is no upstream {name!r}; known: {known}")
    config.check_upstream_files([upstream])
    steps = await upstream_probe.run(settings, upstream, sender=sender, to=to)
    is_good = steps[-1].is_good
    lines = [f"{step.found} {step.advice}".rstrip() for step in steps]
    verdict = f"The upstream {name} works." if is_good else f"The upstream {name} cannot be used."
    return output.Report(
        data={
            "upstream": name,
            "ok": is_good,
            "steps": [{"ok": step.is_good, "found": step.found, "advice": step.advice} for step in steps],
        },
        text="\n".join([*lines, verdict]),
        exit_code=0 if is_good else 1,
    )
