"""Code that sends a message over HTTP or SMTP or verifies an event, with the addresses of this service."""

import contextlib
import functools
import ipaddress
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib import parse

import msgspec

from postroad import config, errors
from postroad.dashboard.framework import literals, requests
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.services.messages import sample_send
from postroad.services.templates import templates

# Snippets that send a message over HTTP: with curl, and with the client library of each language.
#
# The libraries are not in any registry yet, so they are installed from a checkout of the repository next to the
# reader's project. Each snippet is a complete program that prints the message id, or prints the error and fails.

# What a key that does not send is tried with: something to read in each scope.
HTTP_PATHS: Final = {
    callers.Scope.READ: "/v1/messages",
    callers.Scope.TEMPLATES: "/v1/templates",
    callers.Scope.SUPPRESSIONS: "/v1/suppressions",
    callers.Scope.WEBHOOKS: "/v1/webhooks",
    callers.Scope.DOMAINS: "/v1/domains",
    callers.Scope.STATISTICS: "/v1/statistics",
    callers.Scope.TEAM: "/v1/api-keys",
    callers.Scope.OPERATOR: "/v1/operator/health",
}
HTTP_REQUEST: Final = literals.Source("curl", "In a terminal.", literals.shell, "curl @url -H @authorization\n")

HTTP_SOURCES: Final = (
    literals.Source(
        "curl",
        "In a terminal.",
        literals.shell,
        """\
curl @url \\
  -H @authorization \\
  -H 'Content-Type: application/json' \\
  -H "Idempotency-Key: $(date +%s)" \\
  -d @message
""",
    ),
    literals.Source(
        "Python",
        "",
        literals.double,
        """\
import sys

from postroad_client import Client, Email, PostroadError

client = Client(@base_url, token=@api_key)
email = Email(
@members
)
try:
    # Safe to repeat with a key of your own: send(email, idempotency_key="order-1042")
    receipt = client.send(email)
except PostroadError as error:
    sys.exit(str(error))
print(receipt.id)
""",
        install="""\
pip install ../postroad/clients/python
""",
        members=literals.MemberStyle(line="    {name}={value},", names={"from": "sender"}, booleans=("False", "True")),
    ),
    literals.Source(
        "JavaScript",
        "",
        literals.double,
        """\
// hello.mjs
import { Postroad, PostroadError } from "postroad";

const postroad = new Postroad({ baseUrl: @base_url, token: @api_key });
const email = {
@members
};
try {
  // Safe to repeat with a key of your own: send(email, { idempotencyKey: "order-1042" })
  const receipt = await postroad.send(email);
  console.log(receipt.id);
} catch (error) {
  if (!(error instanceof PostroadError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
""",
        install="""\
npm install --install-links ../postroad/clients/javascript
""",
        members=literals.MemberStyle(line="  {name}: {value},", names={"reply_to": "replyTo"}),
    ),
    literals.Source(
        "PHP",
        "",
        literals.single,
        """\
<?php
require __DIR__ . '/vendor/autoload.php';

$client = new Postroad\\Client(@base_url, token: @api_key);
$email = new Postroad\\Email(
@members
);
try {
    // Safe to repeat with a key of your own: send($email, idempotencyKey: 'order-1042')
    $receipt = $client->send($email);
} catch (Postroad\\PostroadException $error) {
    fwrite(STDERR, $error->getMessage() . "\\n");
    exit(1);
}
echo $receipt->id, "\\n";
""",
        install="""\
composer config repositories.postroad path ../postroad/clients/php
composer require postroad/postroad-client:@dev
""",
        members=literals.MemberStyle(
            line="    {name}: {value},", names={"reply_to": "replyTo"}, pair="{} => {}", pairs="[{}]"
        ),
    ),
    literals.Source(
        "Go",
        "",
        literals.go,
        """\
package main

import (
	"context"
	"fmt"
	"log"

	postroad "github.com/postroad/postroad/clients/go"
)

func main() {
	client, err := postroad.New(@base_url, postroad.WithToken(@api_key))
	if err != nil {
		log.Fatal(err)
	}
	email := postroad.Email{
@members
	}
	// Safe to repeat with a key of your own: postroad.WithIdempotencyKey("order-1042")
	receipt, err := client.Send(context.Background(), email)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(receipt.ID)
}
""",
        install="""\
go mod edit -replace github.com/postroad/postroad/clients/go=../postroad/clients/go
go get github.com/postroad/postroad/clients/go
""",
        members=literals.MemberStyle(
            line="\t\t{name}:{gap}{value},",
            names={
                "from": "From",
                "to": "To",
                "cc": "CC",
                "bcc": "BCC",
                "reply_to": "ReplyTo",
                "subject": "Subject",
                "text": "Text",
                "html": "HTML",
                "template": "Template",
                "variables": "Variables",
                "headers": "Headers",
                "tags": "Tags",
                "metadata": "Metadata",
            },
            several="[]string{{{}}}",
            pairs="map[string]string{{{}}}",
            array="[]any{{{}}}",
            object="map[string]any{{{}}}",
            lists=frozenset({"to", "cc", "bcc", "reply_to", "tags"}),
            is_aligned=True,
        ),
    ),
    literals.Source(
        "Ruby",
        "",
        literals.single,
        """\
require "postroad"

client = Postroad::Client.new(@base_url, token: @api_key)
email = Postroad::Email.new(
@members
)
begin
  # Safe to repeat with a key of your own: deliver(email, idempotency_key: "order-1042")
  receipt = client.deliver(email)
rescue Postroad::Error => e
  abort e.message
end
puts receipt.id
""",
        install="""\
# Gemfile
gem "postroad", path: "../postroad/clients/ruby"
""",
        members=literals.MemberStyle(line="  {name}: {value},", pair="{} => {}", pairs="{{ {} }}"),
    ),
    literals.Source(
        "Java",
        "",
        literals.java,
        """\
import dev.postroad.Email;
import dev.postroad.Postroad;
import dev.postroad.PostroadException;
import dev.postroad.Receipt;

public class Hello {
    public static void main(String[] arguments) {
        Postroad postroad = Postroad.builder(@base_url).token(@api_key).build();
        Email email = Email.builder()
@members
                .build();
        try {
            // Safe to repeat with a key of your own: send(email, "order-1042")
            Receipt receipt = postroad.send(email);
            System.out.println(receipt.id());
        } catch (PostroadException e) {
            System.err.println(e.getMessage());
            System.exit(1);
        }
    }
}
""",
        install="""\
mvn install -f ../postroad/clients/java   # then depend on dev.postroad:postroad-client:0.1.0
""",
        members=literals.MemberStyle(
            line="                .{name}({value})",
            names={"reply_to": "replyTo", "headers": "header", "tags": "tag", "variables": "variable"},
            several="{}",
            pair="{}, {}",
            array="java.util.List.of({})",
            object="java.util.Map.ofEntries({})",
            entry="java.util.Map.entry({}, {})",
            has_separate_pairs=True,
        ),
    ),
)


SMTP_SOURCES: Final = (
    literals.Source(
        "curl",
        "In a terminal.",
        literals.shell,
        """\
curl @smtp_url@{curl_option} -u @login \\
  --mail-from @sender --mail-rcpt @recipient \\
  -H @from_field -H @to_field -H 'Subject: Hello' -F '=It works.'
""",
    ),
    literals.Source(
        "Python",
        "With smtplib, from the standard library.",
        literals.double,
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
    literals.Source(
        "Node.js",
        "With nodemailer: npm install nodemailer",
        literals.double,
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
    literals.Source(
        "Django",
        "In settings.py, for send_mail and everything that uses it.",
        literals.double,
        """\
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = @host
EMAIL_PORT = @port
@{django_line}EMAIL_HOST_USER = @username
EMAIL_HOST_PASSWORD = @password
DEFAULT_FROM_EMAIL = @sender
""",
    ),
    literals.Source(
        "Laravel",
        "In .env, for all mail of the application.",
        literals.dotenv,
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

# What differs by TLS mode. Without a context, smtplib would not verify the certificate.
PLAIN: Final[Mapping[str, str]] = {
    "scheme": "smtp",
    "curl_option": "",
    "python_import": "",
    "python_class": "SMTP",
    "python_argument": "",
    "python_line": "",
    "node_option": "secure: false",
    "django_line": "",
}
STARTTLS: Final[Mapping[str, str]] = {
    **PLAIN,
    "curl_option": " --ssl-reqd",
    "python_import": "import ssl\n",
    "python_line": "    smtp.starttls(context=ssl.create_default_context())\n",
    "node_option": "requireTLS: true",
    "django_line": "EMAIL_USE_TLS = True\n",
}
TLS: Final[Mapping[str, str]] = {
    **PLAIN,
    "scheme": "smtps",
    "python_import": "import ssl\n",
    "python_class": "SMTP_SSL",
    "python_argument": ", context=ssl.create_default_context()",
    "node_option": "secure: true",
    "django_line": "EMAIL_USE_SSL = True\n",
}


API_KEY: Final = "YOUR_API_KEY"
USERNAME: Final = "YOUR_USERNAME"
PASSWORD: Final = "YOUR_PASSWORD"  # noqa: S105 - a placeholder
# For an account without a domain.
DOMAIN: Final = "example.com"


class Security(StrEnum):
    STARTTLS = "STARTTLS"
    TLS = "implicit TLS"
    NONE = "none"


class SmtpListener(msgspec.Struct, frozen=True):
    host: str
    port: int
    security: Security


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetContext:
    """The values of all snippets: service, sender and recipient. `smtp` is None without an SMTP listener."""

    base_url: str
    smtp: SmtpListener | None
    sender: str
    recipient: str
    # Whether the account may send from `sender`; else it is an example, and would be refused.
    is_sender_own: bool = True
    # What is sent: the alias of a template and sample values, or else a text.
    template: str | None = None
    variables: Mapping[str, statuses.TemplateValue] = field(default_factory=dict)
    # Whether there is such a template.
    has_template: bool = True


class Snippet(msgspec.Struct, frozen=True):
    """Code to copy; `note` says where it goes, `install` is the command to run first."""

    title: str
    note: str
    text: str
    install: str = ""


_PIECES: Final[Mapping[Security, Mapping[str, str]]] = {
    Security.NONE: PLAIN,
    Security.STARTTLS: STARTTLS,
    Security.TLS: TLS,
}


async def snippet_context(
    request: requests.PageRequest, limits: callers.KeyLimits = callers.NO_LIMITS
) -> SnippetContext:
    """This installation, and a message that a key with these limits may send to the user of the page."""
    sender = await sample_send.default_sender(request.ctx, request.account_id, limits.domains)
    template, variables = await _template(request, limits.templates)
    return SnippetContext(
        base_url=request.base_url.rstrip("/"),
        smtp=smtp_listener(request.ctx.settings, base_url=request.base_url),
        sender=sender or f"{sample_send.SENDER}@{limits.domains[0] if limits.domains else DOMAIN}",
        recipient=request.user.email,
        is_sender_own=sender is not None,
        template=template,
        variables=variables or {},
        has_template=variables is not None,
    )


async def _template(
    request: requests.PageRequest, aliases: Sequence[str]
) -> tuple[str | None, Mapping[str, statuses.TemplateValue] | None]:
    """The first of these templates that exists, with values for it; if none does, the first name without values."""
    for alias in aliases:
        with contextlib.suppress(errors.NotFound, errors.InvalidRequest):
            template = await templates.find_with_parts(request.ctx, request.account_id, alias)
            return alias, await request.ctx.threads.run(
                request.account_id, functools.partial(templates.sample, template)
            )
    return next(iter(aliases), None), None


def smtp_listener(settings: config.Settings, *, base_url: str) -> SmtpListener | None:
    """The SMTP listener of the settings; STARTTLS first, as most applications expect it."""
    chosen = settings.submission
    if chosen.listen:
        security = Security.STARTTLS if "submission" in config.tls_sections(settings) else Security.NONE
        where = config.endpoint(chosen.listen, name="submission.listen")
    elif chosen.tls_listen:
        security, where = Security.TLS, config.endpoint(chosen.tls_listen, name="submission.tls_listen")
    else:
        return None
    host = where.host if _is_this_machine(where.host) else settings.delivery.hostname
    return SmtpListener(host or parse.urlsplit(base_url).hostname or where.host, where.port, security)


def over_http(where: SnippetContext, *, api_key: str = API_KEY) -> tuple[Snippet, ...]:
    content: literals.Members = {"subject": "Hello", "text": "It works."}
    if where.template is not None:
        values = {"variables": where.variables} if where.variables else {}
        content = {"template": where.template, **values}
    message = {"from": where.sender, "to": where.recipient, **content}
    return of_email(where.base_url, message, api_key=api_key)


def of_request(base_url: str, scopes: Collection[callers.Scope], *, api_key: str) -> tuple[Snippet, ...]:
    """How to call the API with a key that does not send."""
    path = next(path for scope, path in HTTP_PATHS.items() if scope in scopes)
    values = {"url": f"{base_url}{path}", "authorization": f"Authorization: Bearer {api_key}"}
    return (_filled(HTTP_REQUEST, values, {}),)


def of_email(
    base_url: str, members: literals.Members, *, files: Sequence[Mapping[str, str]] = (), api_key: str = API_KEY
) -> tuple[Snippet, ...]:
    """How to send an email over HTTP. `files` are attachments as in a request; only that of curl has them."""
    request = {**members, "attachments": files} if files else members
    values = {
        "base_url": base_url,
        "api_key": api_key,
        "url": f"{base_url}/emails",
        "authorization": f"Authorization: Bearer {api_key}",
        "message": json.dumps(request, ensure_ascii=False),
    }
    return tuple(
        _filled(source, values, {"members": source.members.written(members, source.literal)} if source.members else {})
        for source in HTTP_SOURCES
    )


def over_smtp(where: SnippetContext, *, username: str = USERNAME, password: str = PASSWORD) -> tuple[Snippet, ...]:
    """How to send with an SMTP credential; empty without an SMTP listener."""
    if where.smtp is None:
        return ()
    listener = where.smtp
    pieces = _PIECES[listener.security]
    values = {
        "smtp_url": f"{pieces['scheme']}://{config.Endpoint(listener.host, listener.port)}",
        "login": f"{username}:{password}",
        "username": username,
        "password": password,
        "host": listener.host,
        "sender": where.sender,
        "recipient": where.recipient,
        "from_field": f"From: {where.sender}",
        "to_field": f"To: {where.recipient}",
    }
    pieces = {**pieces, "port": str(listener.port)}
    return tuple(_filled(source, values, pieces) for source in SMTP_SOURCES)


def _filled(source: literals.Source, values: Mapping[str, str], pieces: Mapping[str, str]) -> Snippet:
    return Snippet(source.title, source.note, source.filled(values, pieces), source.install)


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


VERIFICATION: Final = (
    Snippet(
        "Python",
        "Flask, FastAPI, Django: pass the raw body, before anything parses it.",
        """\
import hashlib, hmac, re, time

def is_genuine(body: bytes, header: str | None, secret: str, now: int | None = None) -> bool:
    parts = [part.partition("=") for part in (header or "").split(",")]
    times = [value for name, _, value in parts if name == "t"]
    given = [value for name, _, value in parts if name == "v1" and re.fullmatch("[0-9a-f]{64}", value)]
    if not secret or len(times) != 1 or not re.fullmatch("[0-9]{1,15}", times[0]):
        return False
    if abs((int(time.time()) if now is None else now) - int(times[0])) > 300:
        return False
    expected = hmac.new(secret.encode(), times[0].encode() + b"." + body, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(expected, value) for value in given)""",
    ),
    Snippet(
        "Node.js",
        "Express: use express.raw() for the route, to keep the raw bytes.",
        """\
import crypto from "node:crypto";

export function isGenuine(body, header, secret, now = Math.floor(Date.now() / 1000)) {
  const times = [], given = [];
  for (const part of (header ?? "").split(",")) {
    const [name, ...rest] = part.split("=");
    if (name === "t") times.push(rest.join("="));
    if (name === "v1") given.push(rest.join("="));
  }
  if (!secret || times.length !== 1 || !/^[0-9]{1,15}$/.test(times[0])) return false;
  if (Math.abs(now - Number(times[0])) > 300) return false;
  const expected = crypto.createHmac("sha256", secret).update(`${times[0]}.`).update(body).digest();
  return given.some((value) =>
    /^[0-9a-f]{64}$/.test(value) && crypto.timingSafeEqual(expected, Buffer.from(value, "hex")));
}""",
    ),
    Snippet(
        "PHP",
        "Laravel: pass $request->getContent(), and exclude the route from the CSRF check.",
        """\
function is_genuine(string $body, ?string $header, string $secret, ?int $now = null): bool
{
    $sent = ['t' => [], 'v1' => []];
    foreach (explode(',', $header ?? '') as $part) {
        [$name, $value] = explode('=', $part, 2) + [1 => ''];
        $sent[$name][] = $value;
    }
    if ($secret === '' || count($sent['t']) !== 1 || !preg_match('/\\A[0-9]{1,15}\\z/', $sent['t'][0])) {
        return false;
    }
    if (abs(($now ?? time()) - (int) $sent['t'][0]) > 300) {
        return false;
    }
    $expected = hash_hmac('sha256', $sent['t'][0] . '.' . $body, $secret);
    foreach ($sent['v1'] as $value) {
        if (hash_equals($expected, $value)) {
            return true;
        }
    }
    return false;
}""",
    ),
)
