"""Tag lists, `v=DKIM1; k=rsa; p=…`: the format of DKIM and DMARC records (RFC 6376 section 3.2).

White space around names and values is ignored. A malformed list, or one with a duplicate tag, is None: receivers ignore
it.
"""

import re
from typing import Final

# A record of DNS cannot be longer; far more than any of these needs.
MAX_CHARACTERS: Final = 65_535
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_BLANKS: Final = " \t\r\n"


def parse(text: str) -> dict[str, str] | None:
    """The values by the names of their tags, in the order of the text; a semicolon at the end is fine."""
    if len(text) > MAX_CHARACTERS:
        return None
    specs = text.split(";")
    if not specs[-1].strip(_BLANKS):
        specs.pop()
    tags: dict[str, str] = {}
    for spec in specs:
        name, equals, value = spec.partition("=")
        name = name.strip(_BLANKS)
        if not equals or not _NAME.fullmatch(name) or name in tags:
            return None
        tags[name] = value.strip(_BLANKS)
    return tags or None
