"""The value of an Authentication-Results field (RFC 8601): what this host has found, for programs that read the mail.

Names that a stranger wrote appear only if they are host names, and no reasons do, so nothing has to be quoted. Whoever
adds the field removes those that claim to be of this host (section 5).
"""

import re
from typing import Final

from postroad.mail.authentication import authenticate

_NAME: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,252})", re.IGNORECASE | re.ASCII)


def value(results: authenticate.Results, *, host: str) -> str:
    """One line; `host` is the name of this one, and names who has found it."""
    found = [_result("spf", results.spf.result, {f"smtp.{results.spf.identity}": results.spf.domain})]
    for each in results.dkim:
        found += [_result("dkim", each.result, {"header.d": each.domain, "header.s": each.selector})]
    found += [] if results.dkim else [_result("dkim", "none", {})]
    properties = {"header.from": results.dmarc.domain, "policy.dmarc": results.dmarc.policy}
    found.append(_result("dmarc", results.dmarc.result, properties))
    found.append(_result("arc", results.arc.result, {}))
    return "; ".join([host, *found])


def _result(method: str, result: str, properties: dict[str, str]) -> str:
    named = [f"{name}={text}" for name, text in properties.items() if _NAME.fullmatch(text)]
    return " ".join([f"{method}={result}", *named])
