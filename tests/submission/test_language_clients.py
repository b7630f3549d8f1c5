"""The SMTP clients that come with programming languages, and curl: each logs in under TLS, and its message arrives.

They are the ones that applications use without thinking. A language that is not installed is skipped by its name.
"""

import pathlib
import shutil
import smtplib
import ssl
from email.message import EmailMessage

import pytest

from tests.cli import cli_runner
from tests.submission.test_clients import SENDER, SUBJECT, Running, run, running

__all__ = ["running"]

RUBY_SCRIPT = """
require "net/smtp"
smtp = Net::SMTP.new(ENV["SMTP_HOST"], ENV["SMTP_PORT"].to_i,
                     starttls: :always, ssl_context_params: {ca_file: ENV["SSL_CERT_FILE"]})
smtp.start(helo: "client.example.org", user: ENV["SMTP_USERNAME"], secret: ENV["SMTP_PASSWORD"],
           authtype: ENV["SMTP_MECHANISM"].to_sym) do |session|
  message = "From: shop@example.com\\nTo: ruby@clients.test\\nSubject: By Ruby\\n\\n.It works.\\n"
  response = session.send_message(message, "shop@example.com", ENV["SMTP_RECIPIENT"])
  print response.string
end
"""
GO_PROGRAM = """
package main

import (
	"log"
	"net/smtp"
	"os"
)

func main() {
	host := os.Getenv("SMTP_HOST")
	auth := smtp.PlainAuth("", os.Getenv("SMTP_USERNAME"), os.Getenv("SMTP_PASSWORD"), host)
	message := []byte("From: shop@example.com\\r\\nTo: go@clients.test\\r\\nSubject: By Go\\r\\n\\r\\n.It works.\\r\\n")
	where := host + ":" + os.Getenv("SMTP_PORT")
	err := smtp.SendMail(where, auth, "shop@example.com", []string{"go@clients.test"}, message)
	if err != nil {
		log.Fatal(err)
	}
}
"""
# The dot at the start of the line is sent twice by every client, and once by none.
TEXT = ".It works."


def environment_of(running: Running, **more: str) -> dict[str, str]:
    dev_info = {f"SMTP_{name.upper()}": str(value) for name, value in running.smtp.items()}
    return {**dev_info, "SSL_CERT_FILE": str(running.authority), **more}


@pytest.mark.parametrize("mechanism", ["PLAIN", "LOGIN"])
def test_python(running: Running, mechanism: str) -> None:
    """With the package `email`, whose boundaries, folding and encoded words are what most Python programs send."""
    message = EmailMessage()
    recipient = f"python-{mechanism.lower()}@clients.test"
    message["From"], message["To"], message["Bcc"] = f"Büro <{SENDER}>", recipient, "hidden@clients.test"
    message["Subject"] = SUBJECT
    message.set_content(TEXT)
    message.add_alternative(f"<p>{TEXT}</p>", subtype="html")
    trusting = ssl.create_default_context(cafile=str(running.authority))
    smtp = running.smtp
    with smtplib.SMTP(smtp["host"], smtp["port"], timeout=cli_runner.TIMEOUT_SECONDS) as client:
        client.starttls(context=trusting)
        client.ehlo()
        client.user, client.password = smtp["username"], smtp["password"]
        client.auth(mechanism, client.auth_plain if mechanism == "PLAIN" else client.auth_login)
        assert client.send_message(message) == {}
    arrived = running.arrived(recipient)
    assert (arrived["Subject"], arrived["From"], arrived["Bcc"]) == (SUBJECT, f"Büro <{SENDER}>", None)
    body = arrived.get_body(("plain",))
    assert body is not None
    assert body.get_content().strip() == TEXT


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("mechanism", ["PLAIN", "LOGIN"])
def test_curl(running: Running, tmp_path: pathlib.Path, mechanism: str) -> None:
    recipient, smtp = f"curl-{mechanism.lower()}@clients.test", running.smtp
    (tmp_path / "mail").write_bytes(f"From: {SENDER}\nTo: {recipient}\nSubject: By curl\n\n{TEXT}\n".encode())
    printed = run(
        *("curl", "--silent", "--show-error", "--verbose", "--crlf", "--ssl-reqd", "--cacert", str(running.authority)),
        *("--url", f"smtp://{smtp['host']}:{smtp['port']}/client.example.org"),
        *("--user", f"{smtp['username']}:{smtp['password']}", "--login-options", f"AUTH={mechanism}"),
        *("--mail-from", SENDER, "--mail-rcpt", recipient, "--upload-file", str(tmp_path / "mail")),
    )
    assert "250 2.0.0 OK: queued as em_" in printed
    arrived = running.arrived(recipient)
    assert (arrived["Subject"], arrived.get_content().strip()) == ("By curl", TEXT)


@pytest.mark.skipif(shutil.which("ruby") is None, reason="Ruby is not installed")
@pytest.mark.parametrize("mechanism", ["plain", "login"])
def test_ruby(running: Running, mechanism: str) -> None:
    recipient = f"ruby-{mechanism}@clients.test"
    environment = environment_of(running, SMTP_MECHANISM=mechanism, SMTP_RECIPIENT=recipient)
    assert run("ruby", "-e", RUBY_SCRIPT, environment=environment).startswith("250 2.0.0 OK: queued as em_")
    arrived = running.arrived(recipient)
    assert (arrived["Subject"], arrived.get_content().strip()) == ("By Ruby", TEXT)


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_go(running: Running, tmp_path: pathlib.Path) -> None:
    (tmp_path / "main.go").write_text(GO_PROGRAM)
    build = {"GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off", "GOPATH": str(tmp_path)}
    run("go", "run", str(tmp_path / "main.go"), environment=environment_of(running, **build))
    arrived = running.arrived("go@clients.test")
    assert (arrived["Subject"], arrived.get_content().strip()) == ("By Go", TEXT)
