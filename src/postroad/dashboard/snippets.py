"""Code that sends a first mail from an application: the texts as data, with the words of this installation filled in.

Every text has the shape of those in docs/smtp.md. A value is written as a literal of the text's own language, so that
whatever is in it (an address with an apostrophe, a host that a browser names) is never taken for code.
"""

import ipaddress
import json
import re
import shlex
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib import parse

from postroad import config
from postroad.dashboard import visits
from postroad.services import trying_out

API_KEY: Final = "YOUR_API_KEY"
USERNAME: Final = "YOUR_USERNAME"
PASSWORD: Final = "YOUR_PASSWORD"  # noqa: S105 - stands for one
# For an account that has no domain to send from yet.
SENDER: Final = "hello@example.com"
_BARE: Final = re.compile(r"[A-Za-z0-9_.@+-]+")


class Security(StrEnum):
    """How a connection to the SMTP door gets its TLS."""

    STARTTLS = "STARTTLS"
    TLS = "TLS from the start"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class SmtpDoor:
    """Where applications hand in mail over SMTP."""

    host: str
    port: int
    security: Security


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What all texts say: where the service is, between whom a first mail goes. `smtp` is None if nobody listens."""

    base_url: str
    smtp: SmtpDoor | None
    sender: str
    recipient: str
    # Whether the sender is of a domain of the account; else it is an example, and would be refused.
    is_sender_own: bool = True


@dataclass(frozen=True, slots=True)
class Snippet:
    """A text to copy; `note` says where it belongs."""

    title: str
    note: str
    text: str


class _Text(string.Template):
    """A text with places for values. The languages here use `$`, `%` and braces themselves."""

    delimiter = "@"


def _shell(value: str) -> str:
    return shlex.quote(value)


def _double(value: str) -> str:
    """A string of Python and of JavaScript."""
    return json.dumps(value, ensure_ascii=False)


def _single(value: str) -> str:
    """A string of PHP."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _dotenv(value: str) -> str:
    if _BARE.fullmatch(value):
        return value
    return '"' + re.sub(r'([\\"$])', r"\\\1", value) + '"'


@dataclass(frozen=True, slots=True)
class _Source:
    title: str
    note: str
    literal: Callable[[str], str]
    text: str


_HTTP: Final = (
    _Source(
        "curl",
        "In a terminal.",
        _shell,
        """\
curl @url \\
  -H @authorization \\
  -H 'Content-Type: application/json' \\
  -H "Idempotency-Key: $(date +%s)" \\
  -d @message
""",
    ),
    _Source(
        "Python",
        "Nothing to install.",
        _double,
        """\
import json
import urllib.request
import uuid

message = {
    "from": @sender,
    "to": @recipient,
    "subject": "Hello",
    "text": "It works.",
}
request = urllib.request.Request(
    @url,
    data=json.dumps(message).encode(),
    headers={
        "Authorization": @bearer,
        "Content-Type": "application/json",
        # Repeat a request with the same key, and nothing is sent twice.
        "Idempotency-Key": str(uuid.uuid4()),
    },
)
with urllib.request.urlopen(request) as answer:
    print(answer.read().decode())
""",
    ),
    _Source(
        "Node.js",
        "Nothing to install, from version 20 on.",
        _double,
        """\
fetch(@url, {
  method: "POST",
  headers: {
    "Authorization": @bearer,
    "Content-Type": "application/json",
    // Repeat a request with the same key, and nothing is sent twice.
    "Idempotency-Key": crypto.randomUUID(),
  },
  body: JSON.stringify({
    from: @sender,
    to: @recipient,
    subject: "Hello",
    text: "It works.",
  }),
}).then(async (answer) => console.log(answer.status, await answer.text()));
""",
    ),
    _Source(
        "PHP",
        "With the curl extension.",
        _single,
        """\
<?php
$request = curl_init(@url);
curl_setopt_array($request, [
    CURLOPT_POST => true,
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_HTTPHEADER => [
        @authorization,
        'Content-Type: application/json',
        // Repeat a request with the same key, and nothing is sent twice.
        'Idempotency-Key: ' . bin2hex(random_bytes(16)),
    ],
    CURLOPT_POSTFIELDS => json_encode([
        'from' => @sender,
        'to' => @recipient,
        'subject' => 'Hello',
        'text' => 'It works.',
    ]),
]);
echo curl_exec($request);
""",
    ),
)

_SMTP: Final = (
    _Source(
        "curl",
        "In a terminal.",
        _shell,
        """\
curl @smtp_url@{curl_option} -u @login \\
  --mail-from @sender --mail-rcpt @recipient \\
  -H @from_field -H @to_field -H 'Subject: Hello' -F '=It works.'
""",
    ),
    _Source(
        "Python",
        "With smtplib: nothing to install.",
        _double,
        """\
import smtplib
@{python_import}from email.message import EmailMessage

message = EmailMessage()
message["From"] = @sender
message["To"] = @recipient
message["Subject"] = "Hello"
message.set_content("It works.")

with smtplib.@{python_class}(@host, @port@{python_argument}) as smtp:
@{python_line}    smtp.login(@username, @password)
    smtp.send_message(message)
""",
    ),
    _Source(
        "Node.js",
        "With nodemailer: npm install nodemailer",
        _double,
        """\
const nodemailer = require("nodemailer");

const transport = nodemailer.createTransport({
  host: @host,
  port: @port,
  @node_option,
  auth: { user: @username, pass: @password },
});

transport
  .sendMail({ from: @sender, to: @recipient, subject: "Hello", text: "It works." })
  .then((sent) => console.log(sent.response));
""",
    ),
    _Source(
        "Django",
        "In settings.py; send_mail and everything that builds on it then go through Postroad.",
        _double,
        """\
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = @host
EMAIL_PORT = @port
@{django_line}EMAIL_HOST_USER = @username
EMAIL_HOST_PASSWORD = @password
DEFAULT_FROM_EMAIL = @sender
""",
    ),
    _Source(
        "Laravel",
        "In .env, for all mail of the application.",
        _dotenv,
        """\
MAIL_MAILER=smtp
MAIL_SCHEME=@scheme
MAIL_HOST=@host
MAIL_PORT=@port
MAIL_USERNAME=@username
MAIL_PASSWORD=@password
MAIL_FROM_ADDRESS=@sender
""",
    ),
)

# What differs by how TLS begins. Without it smtplib would not look whose certificate it is.
_PLAIN: Final[Mapping[str, str]] = {
    "scheme": "smtp",
    "curl_option": "",
    "python_import": "",
    "python_class": "SMTP",
    "python_argument": "",
    "python_line": "",
    "node_option": "secure: false",
    "django_line": "",
}
_BY_SECURITY: Final[Mapping[Security, Mapping[str, str]]] = {
    Security.NONE: _PLAIN,
    Security.STARTTLS: {
        **_PLAIN,
        "curl_option": " --ssl-reqd",
        "python_import": "import ssl\n",
        "python_line": "    smtp.starttls(context=ssl.create_default_context())\n",
        "node_option": "requireTLS: true",
        "django_line": "EMAIL_USE_TLS = True\n",
    },
    Security.TLS: {
        **_PLAIN,
        "scheme": "smtps",
        "python_import": "import ssl\n",
        "python_class": "SMTP_SSL",
        "python_argument": ", context=ssl.create_default_context()",
        "node_option": "secure: true",
        "django_line": "EMAIL_USE_SSL = True\n",
    },
}


async def place(visit: visits.Visit) -> Place:
    """Where this installation is, and a first mail from the account's own domain to whoever looks at the page."""
    sender = await trying_out.default_sender(visit.ctx, visit.account_id)
    return Place(
        base_url=visit.base_url.rstrip("/"),
        smtp=smtp_door(visit.ctx.settings, base_url=visit.base_url),
        sender=sender or SENDER,
        recipient=visit.user.email,
        is_sender_own=sender is not None,
    )


def smtp_door(settings: config.Settings, *, base_url: str) -> SmtpDoor | None:
    """Where the settings have mail handed in; STARTTLS first, as most applications expect it."""
    chosen = settings.submission
    if chosen.listen:
        security = Security.STARTTLS if chosen.tls_certificate else Security.NONE
        where = config.endpoint(chosen.listen, name="submission.listen")
    elif chosen.tls_listen:
        security, where = Security.TLS, config.endpoint(chosen.tls_listen, name="submission.tls_listen")
    else:
        return None
    host = where.host if _is_this_machine(where.host) else settings.delivery.hostname
    return SmtpDoor(host or parse.urlsplit(base_url).hostname or where.host, where.port, security)


def over_http(where: Place, *, api_key: str = API_KEY) -> tuple[Snippet, ...]:
    """How to send with an API key."""
    message = {"from": where.sender, "to": where.recipient, "subject": "Hello", "text": "It works."}
    values = {
        "url": f"{where.base_url}/emails",
        "bearer": f"Bearer {api_key}",
        "authorization": f"Authorization: Bearer {api_key}",
        "message": json.dumps(message, ensure_ascii=False),
        "sender": where.sender,
        "recipient": where.recipient,
    }
    return tuple(_filled(source, values, {}) for source in _HTTP)


def over_smtp(where: Place, *, username: str = USERNAME, password: str = PASSWORD) -> tuple[Snippet, ...]:
    """How to send with an SMTP credential; nothing where nobody listens."""
    if where.smtp is None:
        return ()
    door = where.smtp
    pieces = _BY_SECURITY[door.security]
    values = {
        "smtp_url": f"{pieces['scheme']}://{config.Endpoint(door.host, door.port)}",
        "login": f"{username}:{password}",
        "username": username,
        "password": password,
        "host": door.host,
        "sender": where.sender,
        "recipient": where.recipient,
        "from_field": f"From: {where.sender}",
        "to_field": f"To: {where.recipient}",
    }
    return tuple(_filled(source, values, {**pieces, "port": str(door.port)}) for source in _SMTP)


def _filled(source: _Source, values: Mapping[str, str], pieces: Mapping[str, str]) -> Snippet:
    """A text with its values as literals, and with what is a piece of it already."""
    literals = {name: source.literal(value) for name, value in values.items()}
    return Snippet(source.title, source.note, _Text(source.text).substitute(literals, **pieces))


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
