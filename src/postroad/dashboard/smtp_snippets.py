"""Snippets that send a first message over SMTP, as in docs/smtp.md, and what differs by TLS mode."""

from collections.abc import Mapping
from typing import Final

from postroad.dashboard import literals

SOURCES: Final = (
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
