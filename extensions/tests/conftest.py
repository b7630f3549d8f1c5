"""The commands of extensions are run as those of the service are."""

from tests.cli.conftest import installation

__all__ = ["installation"]
