"""docs/production.md: steps in an order that works, and commands that say what they found."""

import re
import socket
import subprocess
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "production.md").read_text()


def test_the_password_is_chosen_before_anything_needs_it() -> None:
    chosen = PAGE.index("Open the link that `init` printed, and choose your password.")
    assert PAGE.index("--https acme") < chosen < PAGE.index("second factor")
    assert chosen < PAGE.index("Create an API key")


def test_the_test_of_port_25_tells_the_cases_apart() -> None:
    (script,) = re.findall(r"## Is port 25 blocked\?\n.+?```sh\n(.+?)```", PAGE, re.DOTALL)
    local = script.replace("gmail-smtp-in.l.google.com", "localhost")

    def says(words: str) -> tuple[str, str]:
        ran = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
        return ran.stdout, ran.stderr

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert says(local.replace("/25", f"/{port}")) == ("open\n", "")
    assert says(local.replace("/25", f"/{port}")) == ("blocked\n", "")
    assert says("getent() { return 2; }\n" + script) == ("no DNS\n", "")
