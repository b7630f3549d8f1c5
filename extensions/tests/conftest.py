"""The commands of extensions are run as those of the service are."""

from tests.cli.conftest import empty, installation

__all__ = ["empty", "installation"]
