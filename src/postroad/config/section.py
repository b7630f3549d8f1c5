"""The base of the sections of the configuration."""

import msgspec


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the configuration file."""

    def check(self) -> None:
        """Raise ConfigError if values are invalid or contradict each other."""
