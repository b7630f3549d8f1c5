"""Sends with django-anymail, in a process of its own: settings of Django are those of a whole process.

Reads `{"backend": …, "anymail": {…}, "messages": [{…}]}` from standard input. `esp` options of a message, such as
`tags`, `metadata`, `send_at` and `merge_metadata`, are set as attributes. Writes for each message the recipients with
their status and id, or the error.
"""

import json
import sys
from typing import Any

import django
from anymail.exceptions import AnymailError
from django.conf import settings
from django.core import mail


def sent(given: dict[str, Any]) -> dict[str, Any]:
    """What the backend says about one message."""
    message = mail.EmailMultiAlternatives(**given.get("message", {}))
    if "html" in given:
        message.attach_alternative(given["html"], "text/html")
    for name, content, kind in given.get("attachments", []):
        message.attach(name, content, kind)
    for name, value in given.get("esp", {}).items():
        setattr(message, name, value)
    try:
        message.send()
    except AnymailError as problem:
        return {"error": str(problem)}
    found = message.anymail_status.recipients
    return {"recipients": {address: [one.status, one.message_id] for address, one in found.items()}}


def main() -> None:
    """Send everything."""
    given = json.load(sys.stdin)
    settings.configure(EMAIL_BACKEND=given["backend"], ANYMAIL=given["anymail"], USE_TZ=True)
    django.setup()
    print(json.dumps([sent(one) for one in given["messages"]]))  # noqa: T201 - this is what the test reads


if __name__ == "__main__":
    main()
