"""Clients that common generators make of the document: a person would use them as they are."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.conformance import live_service
from tests.openapi.test_document import DOCUMENT

ROOT = Path(__file__).parents[2]
TYPES_GENERATOR = ROOT / "tests/compat/node_modules/openapi-typescript/bin/cli.js"
COMPILER = ROOT / "clients/javascript/node_modules/typescript/bin/tsc"
NAME = "generated_postroad_client"
TIMEOUT_SECONDS = 600
# All that the generator cannot make: a message and a table are neither JSON nor text to it.
UNSUPPORTED = [
    "GET /v1/messages/{id}/raw within messages.",
    "POST /v1/suppressions/import within suppressions.",
    "GET /v1/inbound/{id}/raw within inbound.",
]
PROGRAM = """
import type { components, operations, webhooks } from "./api";

type Email = components["schemas"]["SendRequest"];
type Receipt = operations["sendEmail"]["responses"]["202"]["content"]["application/json"];
type Refused = operations["getEmail"]["responses"]["404"]["content"]["application/json"];
type Bounced = webhooks["email.bounced"]["post"]["requestBody"]["content"]["application/json"];

export const plain: Email = { from: "a@example.com", to: "b@example.net", subject: "Hello", text: "Hi" };
export const templated: Email = { from: "a@example.com", to: ["b@example.net"], template: "welcome" };
export const template: components["schemas"]["TemplateRequest"] = { subject: "Welcome", html: "<p>Hi" };
export const batch: components["schemas"]["BatchRequest"] = { emails: [plain, templated] };
export const query: operations["listMessages"]["parameters"]["query"] = { limit: 10 };
export const key = (call: operations["sendEmail"]): string => call.parameters.header["Idempotency-Key"];
export const id = (receipt: Receipt): string => receipt.id;
export const code = (refused: Refused): "not_found" => refused.code;
export const address = (event: Bounced): string => event.data.to;

// @ts-expect-error: a message has a sender
export const incomplete: Email = { to: "b@example.net", subject: "Hello", text: "Hi" };
// @ts-expect-error: and a subject, or a template that has one
export const untitled: Email = { from: "a@example.com", to: "b@example.net", text: "Hi" };
"""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document in a file, in a folder for what is made of it."""
    path = tmp_path_factory.mktemp("generated") / "openapi.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


@pytest.fixture
def generated(document: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModuleType, str]]:
    """The client for Python, and what the generator said."""
    folder = document.parent
    (folder / "config.yml").write_text("post_hooks: []\n")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(document), "--meta", "none"]
    command += ["--config", str(folder / "config.yml"), "--output-path", str(folder / NAME), "--overwrite"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True, cwd=folder)
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module(NAME), done.stdout + done.stderr
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


def test_a_generated_python_client_sends_and_reads(
    generated: tuple[ModuleType, str], sqlite_service: live_service.Service
) -> None:
    package, said = generated
    warnings = [line.partition("parsing ")[2] for line in said.splitlines() if line.startswith("WARNING")]
    assert [line.removesuffix(" Endpoint will not be generated.") for line in warnings] == UNSUPPORTED
    assert "Unable" not in said
    emails = {name: importlib.import_module(f"{NAME}.api.emails.{name}") for name in ("send_email", "get_email")}
    models = importlib.import_module(f"{NAME}.models")
    body = models.SendRequest(from_="shop@example.com", to="ada@example.org", subject="Hello", text="Hi")
    token = sqlite_service.mine.owner.removeprefix("Bearer ")
    with package.AuthenticatedClient(base_url=sqlite_service.base_url, token=token) as client:
        receipt = emails["send_email"].sync(client=client, body=body, idempotency_key=live_service.new_key())
        message = emails["get_email"].sync(receipt.id, client=client)
        unknown = emails["get_email"].sync("em_" + "0" * 28, client=client)
        templates = importlib.import_module(f"{NAME}.api.templates.list_templates").sync(client=client)
    assert isinstance(receipt, models.Receipt)
    assert (message.id, message.recipients[0].email) == (receipt.id, "ada@example.org")
    assert (type(unknown), unknown.code) == (models.NotFoundError, "not_found")
    assert "welcome" in [each.alias for each in templates.templates]
    # Not one type for each operation and status.
    assert len([name for name in dir(models) if name.endswith("Error")]) < 20


def test_generated_types_of_typescript_are_those_of_a_small_program(document: Path) -> None:
    folder = document.parent
    (folder / "program.ts").write_text(PROGRAM)
    for command in (
        [str(TYPES_GENERATOR), str(document), "-o", str(folder / "api.d.ts")],
        [str(COMPILER), "--noEmit", "--strict", "--target", "es2022", "--lib", "es2022", "program.ts"],
    ):
        done = subprocess.run(
            ["node", *command], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, cwd=folder
        )
        assert done.returncode == 0, done.stdout + done.stderr
