"""Who owns a new file: root writes for the user of the service, who has to read it afterwards."""

import contextlib
import os
from pathlib import Path


def inherit(descriptor: int, like: Path) -> None:
    """As root, give an open new file the owner of another file or folder; if that does not exist, of its folder."""
    if os.geteuid() == 0:
        found = (like if like.exists() else like.absolute().parent).stat()
        # In a container, root may not be allowed to.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, found.st_uid, found.st_gid)
