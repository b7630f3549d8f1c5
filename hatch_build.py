"""Adds the pages of the documentation to the wheel, for `/docs/*.md`, without the images, which are much larger."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DocumentationHook(BuildHookInterface):
    """What the table of files to include cannot say: only the Markdown of a folder."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files. A checkout is served from its own folder."""
        root = Path(self.root)
        if version != "editable":
            pages = {path: path.relative_to(root) for path in sorted((root / "docs").rglob("*.md"))}
            build_data["force_include"].update({str(path): f"postroad/{name}" for path, name in pages.items()})
