"""`postroad deploy-files`: the files of the folder deploy, which are part of the package."""

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import click

import postroad
from postroad.cli.framework import command

# A wheel does not keep the mode of a script.
SCRIPT_MODE: Final = 0o755


@click.command("deploy-files")
@click.argument("folder", metavar="DIR", type=command.FOLDER)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def deploy_files(folder: Path, *, force: bool) -> None:
    """Write files for systemd, Docker, Kubernetes, proxies and Prometheus to a folder."""
    installed: Traversable = resources.files("postroad") / "deploy"
    if not installed.is_dir():  # a checkout
        installed = Path(postroad.__file__).parent.parent.parent / "deploy"
    files = {folder / name: source for name, source in _files(installed)}
    present = [str(path) for path in files if path.exists()]
    if present and not force:
        raise click.ClickException(f"these files exist: {', '.join(present)}; add --force to overwrite them")
    try:
        for path, source in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.read_bytes())
            if path.suffix == ".sh":
                path.chmod(SCRIPT_MODE)
            click.echo(path)
    except OSError as problem:
        raise click.ClickException(f"{problem.filename} cannot be written: {problem.strerror}") from None


def _files(folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda child: child.name):
        if entry.is_dir():
            yield from ((f"{entry.name}/{name}", file) for name, file in _files(entry))
        else:
            yield entry.name, entry
