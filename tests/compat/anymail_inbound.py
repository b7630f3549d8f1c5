"""Reads an inbound webhook with django-anymail, in a process of its own, as `anymail_calls.py` does.

Reads `{"view": …, "event": …}` from standard input, and writes what an application gets.
"""

import json
import sys

import django
from django.conf import settings
from django.utils import module_loading


def main() -> None:
    """Read one event."""
    given = json.load(sys.stdin)
    settings.configure(ANYMAIL={"WEBHOOK_SECRET": "a:b"}, USE_TZ=True)
    django.setup()
    message = module_loading.import_string(given["view"])().esp_to_anymail_event(given["event"]).message
    told = {
        "envelope_sender": message.envelope_sender,
        "envelope_recipient": message.envelope_recipient,
        "from": message.from_email.addr_spec,
        "to": [each.addr_spec for each in message.to],
        "bcc": message["Bcc"],
        "subject": message.subject,
        "date": message.date.isoformat(),
        "reply_to": message["Reply-To"],
        "text": message.text,
        "attachments": {each.get_filename(): each.get_content_bytes().decode() for each in message.attachments},
        "inline": list(message.content_id_map),
        "spam_detected": message.spam_detected,
    }
    print(json.dumps(told))  # noqa: T201 - this is what the test reads


if __name__ == "__main__":
    main()
