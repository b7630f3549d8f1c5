"""What was acknowledged over SMTP is there after the worst end that a process can have."""

import re
import smtplib
from pathlib import Path

import httpx

from tests.cli import cli_runner
from tests.cli.test_dev import credential, handover, start
from tests.submission.submission_server import MESSAGE, SENDER


def test_a_message_survives_a_kill_right_after_its_acknowledgement(tmp_path: Path) -> None:
    with start(tmp_path) as service:
        dev_info = handover(service, tmp_path)
        with smtplib.SMTP(
            dev_info["smtp"]["host"], dev_info["smtp"]["port"], timeout=cli_runner.TIMEOUT_SECONDS
        ) as client:
            client.login(*credential(dev_info))
            client.mail(SENDER)
            client.rcpt("fail@example.net")
            code, text = client.data(MESSAGE)
            service.process.kill()
            service.process.wait(cli_runner.TIMEOUT_SECONDS)
    queued = re.search(r"em_\w+", text.decode())
    assert code == 250
    assert queued is not None
    with start(tmp_path) as service:
        service.wait_for(lambda: "started" in service.errors.read_text() or None, what="the start")
        dev_info = handover(service, tmp_path)
        shown = httpx.get(f"{dev_info['base_url']}/emails/{queued[0]}", auth=credential(dev_info))
    assert (shown.status_code, shown.json()["source"]) == (200, "smtp")


def test_a_stop_answers_a_client_that_waits_and_ends_well(tmp_path: Path) -> None:
    with start(tmp_path) as service:
        dev_info = handover(service, tmp_path)
        with smtplib.SMTP(
            dev_info["smtp"]["host"], dev_info["smtp"]["port"], timeout=cli_runner.TIMEOUT_SECONDS
        ) as client:
            client.login(*credential(dev_info))
            assert service.stop()[0] == 0
            code, text = client.getreply()
            assert (code, text[:5]) == (421, b"4.3.2")
            client.close()
