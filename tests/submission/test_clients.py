"""Programs that people send mail with, as they come: each logs in under TLS, and its message arrives.

A program that is not installed is skipped by its name. nodemailer is looked for where node looks: in NODE_PATH.
"""

import email
import email.policy
import os
import pathlib
import shutil
import smtplib
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import trustme

from benchmarks.peers import postfix, process
from tests.cli import cli_runner
from tests.cli.test_dev import handover
from tests.submission import submission_server

SENDER = "shop@example.com"
SUBJECT = "Grüße aus Köln"

# Over what the private instance of the benchmarks has.
RELAY_CF = """
relayhost = [127.0.0.1]:{next_hop}
smtp_tls_security_level = encrypt
smtp_sasl_auth_enable = yes
smtp_sasl_password_maps = inline:{{ {{ [127.0.0.1]:{next_hop} = {username}:{password} }} }}
smtp_sasl_security_options = noanonymous
smtputf8_enable = yes
"""
TLS_MASTER_CF = "tlsmgr unix - - n 1000 1 tlsmgr\n"

NODE_SCRIPT = """
const transport = require("nodemailer").createTransport({
  host: process.env.SMTP_HOST, port: Number(process.env.SMTP_PORT), requireTLS: true,
  auth: {user: process.env.SMTP_USERNAME, pass: process.env.SMTP_PASSWORD},
  tls: {ca: require("fs").readFileSync(process.env.SMTP_AUTHORITY)},
});
transport.sendMail({
  from: "Shop <shop@example.com>", to: "nodemailer@clients.test", bcc: "hidden@clients.test",
  subject: "Grüße aus Köln", text: "It works.", html: "<p>It works.</p>",
}).then((sent) => console.log(sent.response));
"""


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
        "POSTROAD_SUBMISSION__TLS_CERTIFICATE": str(files.chain),
        "POSTROAD_SUBMISSION__TLS_KEY": str(files.key),
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


def test_nodemailer(running: Running) -> None:
    if not has_nodemailer():
        pytest.skip("nodemailer is not installed")
    smtp = running.smtp
    environment = {f"SMTP_{name.upper()}": str(value) for name, value in smtp.items()}
    printed = run("node", "-e", NODE_SCRIPT, environment={**environment, "SMTP_AUTHORITY": str(running.authority)})
    assert printed.startswith("250 2.0.0 OK: queued as em_")
    for recipient in ("nodemailer@clients.test", "hidden@clients.test"):
        arrived = running.arrived(recipient)
        assert arrived["Subject"] == SUBJECT
        assert "hidden@clients.test" not in str(arrived)


def no_relay() -> str | None:
    """Why Postfix cannot relay with a password here; None when it can."""
    if not any(pathlib.Path("/usr/lib").glob("*/sasl2/libplain.so*")):
        return "Cyrus SASL's plugins are not installed: apt-get install libsasl2-modules"
    return postfix.missing()


@pytest.mark.skipif(no_relay() is not None, reason=str(no_relay()))
def test_postfix_as_a_relay(running: Running) -> None:
    # Postfix works as a user of its own, who may not enter pytest's folders.
    with tempfile.TemporaryDirectory(prefix="postroad-postfix-") as parent:
        pathlib.Path(parent).chmod(0o755)
        instance = _relay(pathlib.Path(parent, "instance"), running.smtp)
        instance.start()
        try:
            with smtplib.SMTP("127.0.0.1", instance.port, timeout=cli_runner.TIMEOUT_SECONDS) as client:
                content = f"From: {SENDER}\r\nTo: postfix@clients.test\r\nSubject: {SUBJECT}\r\n\r\nIt works.\r\n"
                client.sendmail(SENDER, ["postfix@clients.test"], content.encode(), mail_options=["SMTPUTF8"])
            arrived = running.arrived("postfix@clients.test")
            process.wait_until(lambda: instance.stored() == 0, what="the end of the relay")
        finally:
            instance.stop()
    assert arrived["Subject"] == SUBJECT
    assert arrived.get_content().strip() == "It works."


def _relay(folder: pathlib.Path, smtp: dict[str, Any]) -> postfix.Postfix:
    for name in ("configuration", "queue", "data"):
        (folder / name).mkdir(parents=True)
    shutil.chown(folder / "data", user="postfix")
    next_hop = {"next_hop": smtp["port"], "username": smtp["username"], "password": smtp["password"]}
    main = postfix.MAIN_CF.format(folder=folder, processes=20) + RELAY_CF.format(**next_hop)
    (folder / "configuration" / "main.cf").write_text(main)
    port = process.free_port()
    (folder / "configuration" / "master.cf").write_text(postfix.MASTER_CF.format(port=port) + TLS_MASTER_CF)
    return postfix.Postfix(folder, port=port)
