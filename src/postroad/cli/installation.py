"""Which installation of this machine a command works on, as far as that needs nothing of the service."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "POSTROAD_CONFIG"
# What `postroad init` writes.
DEFAULT_FILE = Path("/etc/postroad/postroad.toml")
DEFAULT_TEXT: Final = f"Default: {VARIABLE}, or {DEFAULT_FILE}."


def file_to_write(environment: Mapping[str, str]) -> Path:
    """The settings file of this machine, which may not exist yet."""
    return Path(environment.get(VARIABLE) or DEFAULT_FILE)


def settings_file(given: Path | None, environment: Mapping[str, str]) -> Path | None:
    """The settings file: that of the option, of the variable, or of `postroad init` if it is there."""
    if given is not None:
        return given
    file = file_to_write(environment)
    return file if environment.get(VARIABLE) or _is_there(file) else None


def _is_there(file: Path) -> bool:
    """Whether there is a file. One that this user may not see counts: the error of reading it says what to do."""
    try:
        os.stat(file)  # noqa: PTH116 - `exists` differs between versions of Python where it is not permitted
    except PermissionError:
        return True
    except OSError:
        return False
    return True
