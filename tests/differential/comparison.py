"""What two services of one commit answer differently, replaced by what is equal: ids, times, secrets."""

import re
from typing import Final

from tests.differential import services

_ID: Final = re.compile(rb"\b[a-z]{2,4}_[0-9a-f]{28}\b")
# Each with what stands for it.
_REPLACED: Final = (
    (re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"), b"(time)"),
    (re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?"), b"(time)"),
    (re.compile(rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d? \w{3} \d{4} \d\d:\d\d:\d\d(?: GMT| [+-]\d{4})?"), b"(time)"),
    (re.compile(rb"(?i)(Retry-After: )\d+"), rb"\1(seconds)"),
    (re.compile(rb"(?i)(try again in )\d+ \w+"), rb"\1(time)"),
    (re.compile(rb"(RateLimit: \"account\";r=)\d+;t=\d+"), rb"\1(left)"),
    (re.compile(rb"(nonce-|nonce=\"|name=\"csrf_token\" value=\")[A-Za-z0-9+/_.=-]+"), rb"\1(random)"),
    (re.compile(rb"(?i)(set-cookie: [^=]+=)[^;\r]+"), rb"\1(random)"),
    (re.compile(rb"(\"x-postroad-version\":\")[^\"]+"), rb"\1(version)"),
    (re.compile(rb"(?m)^([0-9a-f]+)\r$"), b"(size)\r"),
    # A boundary of ours is made from the id of its message.
    (re.compile(rb"=_[0-9a-f]{32}"), b"(boundary)"),
)


class Normaliser:
    """Gives the ids of one service names that are those of the other too: the conversation, and the place in it.

    A name stays: a replay must have the id of its first response.
    """

    def __init__(self, service: services.Service) -> None:
        self._names: dict[bytes, bytes] = {}
        self._secrets = sorted(service.secrets.items(), key=lambda item: -len(item[1]))

    def normalise(self, response: bytes, number: int) -> bytes:
        """The response to a conversation, as it is compared."""
        for name, secret in self._secrets:
            if secret in response:
                response = response.replace(secret, f"({name})".encode())
        count = len(self._names)

        def name_of(found: re.Match[bytes]) -> bytes:
            kind = found[0].partition(b"_")[0]
            name = b"%s_#%d.%d" % (kind, number, len(self._names) - count)
            return self._names.setdefault(found[0], name)

        response = _ID.sub(name_of, response)
        for pattern, replacement in _REPLACED:
            response = pattern.sub(replacement, response)
        return response
