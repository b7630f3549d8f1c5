"""Programs and languages that people send mail with, as they come: each logs in under TLS, and its message arrives.

One that is not installed is skipped by its name. curl, nodemailer, PHPMailer and Postfix send the examples of
docs/smtp.md in tests/docs/test_smtp.py, Django those of tests/examples.
"""

import email
import email.policy
import os
import pathlib
import shutil
import smtplib
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any

import httpx
import pytest
import trustme

from benchmarks.peers import postfix
from tests.cli import cli_runner
from tests.cli.test_dev import handover
from tests.submission import submission_server

SENDER = "shop@example.com"
SUBJECT = "Grüße aus Köln"

RUBY_SCRIPT = """
require "net/smtp"
smtp = Net::SMTP.new(ENV["SMTP_HOST"], ENV["SMTP_PORT"].to_i,
                     starttls: :always, ssl_context_params: {ca_file: ENV["SSL_CERT_FILE"]})
smtp.start(helo: "client.example.org", user: ENV["SMTP_USERNAME"], secret: ENV["SMTP_PASSWORD"],
           authtype: :plain) do |session|
  message = "From: shop@example.com\\nTo: ruby@clients.test\\nSubject: By Ruby\\n\\n.It works.\\n"
  response = session.send_message(message, "shop@example.com", "ruby@clients.test")
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
# What docs/smtp.md does not say of a private Postfix.
TLS_MASTER_CF = "tlsmgr unix - - n 1000 1 tlsmgr\n"


@dataclass(frozen=True, slots=True)
class Running:
    """A service whose SMTP listener has a certificate, and the authority that has issued it."""

    service: cli_runner.Service
    dev_info: dict[str, Any]
    authority: pathlib.Path

    @property
    def smtp(self) -> dict[str, Any]:
        smtp: dict[str, Any] = self.dev_info["smtp"]
        return smtp

    def arrived(self, recipient: str) -> email.message.EmailMessage:
        """The message that the mailbox simulator got for a recipient."""
        auth = (self.smtp["username"], self.smtp["password"])
        inbox = f"{self.dev_info['base_url']}/v1/inbox"

        def ask() -> bytes | None:
            found = httpx.get(inbox, params={"to": recipient}, auth=auth).json()["messages"]
            return httpx.get(f"{inbox}/{found[0]['id']}/raw", auth=auth).content if found else None

        raw = self.service.wait_for(ask, what=f"the message to {recipient}")
        return email.message_from_bytes(raw, policy=email.policy.default)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("clients")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    files = submission_server.issue(authority, folder)
    environment = {
        "POSTROAD_HTTP__TLS": "false",
        "POSTROAD_TLS__CERTIFICATE": str(files.chain),
        "POSTROAD_TLS__KEY": str(files.key),
        "POSTROAD_SUBMISSION__AUTH_WITHOUT_TLS": "false",
    }
    words = ("dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0")
    with cli_runner.Service(*words, folder=folder, environment=environment) as service:
        yield Running(service, handover(service, folder), folder / "authority.pem")
        assert service.stop()[0] == 0


def run(*command: str, environment: dict[str, str] | None = None) -> str:
    """What a program prints that has to succeed."""
    ended = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=cli_runner.TIMEOUT_SECONDS,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@pytest.mark.skipif(shutil.which("swaks") is None, reason="swaks is not installed")
@pytest.mark.parametrize("mechanism", ["PLAIN", "LOGIN"])
def test_swaks(running: Running, mechanism: str) -> None:
    recipient = f"swaks-{mechanism.lower()}@clients.test"
    smtp = running.smtp
    printed = run(
        *("swaks", "--server", f"{smtp['host']}:{smtp['port']}", "--tls", "--tls-verify"),
        *("--tls-ca-path", str(running.authority), "--auth", mechanism),
        *("--auth-user", smtp["username"], "--auth-password", smtp["password"]),
        *("--from", SENDER, "--to", recipient, "--header", "Subject: By swaks"),
    )
    assert "250 2.0.0 OK: queued as em_" in printed
    arrived = running.arrived(recipient)
    assert arrived["Subject"] == "By swaks"
    assert "with ESMTPSA id req_" in " ".join(arrived["Received"].split())


def has_nodemailer() -> bool:
    node = shutil.which("node")
    return (
        node is not None
        and not subprocess.run(
            [node, "-e", "require('nodemailer')"], stdin=subprocess.DEVNULL, capture_output=True, check=False
        ).returncode
    )


def no_relay() -> str | None:
    """Why Postfix cannot relay with a password here; None when it can."""
    if not any(pathlib.Path("/usr/lib").glob("*/sasl2/libplain.so*")):
        return "Cyrus SASL's plugins are not installed: apt-get install libsasl2-modules"
    return postfix.missing()


def environment_of(running: Running, **more: str) -> dict[str, str]:
    dev_info = {f"SMTP_{name.upper()}": str(value) for name, value in running.smtp.items()}
    return {**dev_info, "SSL_CERT_FILE": str(running.authority), **more}


def test_python(running: Running) -> None:
    """With the package `email`, whose boundaries, folding and encoded words are what most Python programs send."""
    message = EmailMessage()
    message["From"], message["To"], message["Bcc"] = f"Büro <{SENDER}>", "python@clients.test", "hidden@clients.test"
    message["Subject"] = SUBJECT
    message.set_content(TEXT)
    message.add_alternative(f"<p>{TEXT}</p>", subtype="html")
    smtp = running.smtp
    with smtplib.SMTP(smtp["host"], smtp["port"], timeout=cli_runner.TIMEOUT_SECONDS) as client:
        client.starttls(context=ssl.create_default_context(cafile=str(running.authority)))
        client.login(smtp["username"], smtp["password"])
        assert client.send_message(message) == {}
    arrived = running.arrived("python@clients.test")
    assert (arrived["Subject"], arrived["From"], arrived["Bcc"]) == (SUBJECT, f"Büro <{SENDER}>", None)
    body = arrived.get_body(("plain",))
    assert body is not None
    assert body.get_content().strip() == TEXT


@pytest.mark.skipif(shutil.which("ruby") is None, reason="Ruby is not installed")
def test_ruby(running: Running) -> None:
    assert run("ruby", "-e", RUBY_SCRIPT, environment=environment_of(running)).startswith("250 2.0.0 OK: queued as em_")
    arrived = running.arrived("ruby@clients.test")
    assert (arrived["Subject"], arrived.get_content().strip()) == ("By Ruby", TEXT)


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_go(running: Running, tmp_path: pathlib.Path) -> None:
    (tmp_path / "main.go").write_text(GO_PROGRAM)
    build = {"GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off", "GOPATH": str(tmp_path)}
    run("go", "run", str(tmp_path / "main.go"), environment=environment_of(running, **build))
    arrived = running.arrived("go@clients.test")
    assert (arrived["Subject"], arrived.get_content().strip()) == ("By Go", TEXT)
