"""The folders of the clients: each is a package that could be handed to somebody as it is, and needs nothing else."""

import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from clients.conformance import languages
from tests import test_repository

ROOT = Path(__file__).parents[2]
FOLDERS = sorted({language.folder for language in languages.LANGUAGES})
EVERY_CLIENT = pytest.mark.parametrize("client", FOLDERS)
# With the resources and the frameworks.
A_PAGE_LINES = 150

# Where a client says its version. Python's and Ruby's package files read it from the code; Go has it in the code alone.
VERSION = {
    "python": {"src/postroad_client/__init__.py": r'^__version__ = "(.+)"$'},
    "javascript": {
        "package.json": r'^  "version": "(.+)",$',
        "package-lock.json": r'^  "version": "(.+)",$',
        "lib/version.js": r'^export const VERSION = "(.+)";$',
        "index.cjs": r'^var VERSION = "(.+)";$',
    },
    "php": {"src/Client.php": r"const VERSION = '(.+)';$"},
    "go": {"client.go": r'^const Version = "(.+)"$'},
    "ruby": {"lib/postroad/version.rb": r'^  VERSION = "(.+)"$'},
    "java": {
        "pom.xml": r"^  <version>(.+)</version>$",
        "src/main/java/dev/postroad/Transport.java": r'USER_AGENT = "postroad-java/(.+)";$',
        "README.md": r"postroad-client[:-](\d+\.\d+\.\d+)",
    },
}
# Hosts from which packages come. The pattern does not match itself.
REGISTRY = re.compile(r"py[p]i\.|np[m]js|packag[i]st|rubyge[m]s\.org|mav[e]n\.org|sonat[y]pe|gol[a]ng\.org|pkg\.[g]o")


def folder(client: str) -> Path:
    return ROOT / "clients" / client


def read(client: str, name: str) -> str:
    return (folder(client) / name).read_text()


@EVERY_CLIENT
def test_the_key_is_in_the_variable_that_the_command_line_reads_too(client: str) -> None:
    variables = set(re.findall(r"POSTROAD_(?:\w*TOKEN\w*|\w*KEY\w*)", read(client, "README.md")))
    assert variables == {"POSTROAD_API_KEY"}


def sources(under: str) -> list[tuple[str, str]]:
    """The Python files of a folder of the clients."""
    found = list(test_repository.python_files(f"clients/{under}"))
    assert found
    return found


def imported(text: str) -> set[str]:
    """The packages that a Python file imports from."""
    nodes = list(ast.walk(ast.parse(text)))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {module.split(".")[0] for module in modules}


def test_every_client_is_in_the_list_with_its_folder() -> None:
    listed = re.findall(r"\| \[(\w+)\]\((\w+)\) \|$", read("", "README.md"), re.MULTILINE)
    assert sorted(listed) == [(name, name) for name in FOLDERS]
    beside = {path.name for path in (ROOT / "clients").iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert beside == {*FOLDERS, "conformance"}


@EVERY_CLIENT
def test_a_readme_is_at_most_a_page(client: str) -> None:
    assert len(read(client, "README.md").splitlines()) <= A_PAGE_LINES


@EVERY_CLIENT
def test_a_client_comes_with_the_licence_of_the_repository(client: str) -> None:
    assert (folder(client) / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@EVERY_CLIENT
def test_a_client_has_one_version_wherever_it_says_so(client: str) -> None:
    said = {name: re.findall(pattern, read(client, name), re.MULTILINE) for name, pattern in VERSION[client].items()}
    assert all(said.values()), said
    (version,) = {version for found in said.values() for version in found}
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)


def test_package_files_without_a_version_read_it_from_the_code() -> None:
    project = tomllib.loads(read("python", "pyproject.toml"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] in VERSION["python"]
    assert "spec.version = Postroad::VERSION\n" in read("ruby", "postroad.gemspec")


def test_a_client_needs_its_language_and_nothing_else() -> None:
    project = tomllib.loads(read("python", "pyproject.toml"))["project"]
    assert project["dependencies"] == []
    assert test_repository.wanted(project["optional-dependencies"]["async"]) == {"aiohttp", "async-timeout"}
    assert not json.loads(read("javascript", "package.json")).keys() & {"dependencies", "peerDependencies"}
    assert json.loads(read("php", "composer.json"))["require"].keys() <= {"php", "ext-openssl"}
    assert "require" not in read("go", "go.mod")
    assert "dependency" not in read("ruby", "postroad.gemspec")
    pom = read("java", "pom.xml")
    # Spring is for whoever uses its class, and comes with the application.
    assert pom.count("<dependency>") == pom.count("<scope>test</scope>") + pom.count("<optional>true</optional>")
    assert pom.count("<optional>true</optional>") == pom.count("<scope>provided</scope>") == 1
    files = folder("java").rglob("src/main/**/*.java")
    assert [path.name for path in files if "springframework" in path.read_text()] == ["PostroadMailSender.java"]


@pytest.mark.parametrize("client", VERSION)
def test_a_client_has_a_changelog_and_links_that_work_elsewhere(client: str) -> None:
    assert "\n## Unreleased\n" in read(client, "CHANGELOG.md")
    links = [
        link for name in ("README.md", "CHANGELOG.md") for link in re.findall(r"\]\(([^)]+)\)", read(client, name))
    ]
    assert links
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_python_client_can_be_published() -> None:
    project = tomllib.loads(read("python", "pyproject.toml"))["project"]
    assert project["urls"] == {
        "Homepage": "https://github.com/postroad/postroad",
        "Documentation": "https://github.com/postroad/postroad/tree/main/clients/python#readme",
        "Repository": "https://github.com/postroad/postroad",
        "Changelog": "https://github.com/postroad/postroad/blob/main/clients/python/CHANGELOG.md",
        "Issues": "https://github.com/postroad/postroad/issues",
    }
    assert {"readme", "license", "keywords", "classifiers", "authors"} <= project.keys()


def test_nothing_here_imports_the_service() -> None:
    assert [name for name, text in sources("") if "postroad" in imported(text)] == []


def test_the_python_client_imports_the_standard_library_and_for_asyncio_aiohttp() -> None:
    # The module for a framework imports that framework, and no other does.
    frameworks = {f"{name}.py": name for name in ("django", "fastapi", "flask")}
    names = {
        name
        for path, text in sources("python/src/")
        for name in imported(text)
        if name != frameworks.get(path.rpartition("/")[2])
    }
    # aiohttp brings async_timeout and yarl; _typeshed and typing_extensions are read by type checkers alone.
    allowed = {"aiohttp", "async_timeout", "postroad_client", "yarl", "_typeshed", "typing_extensions"}
    assert names - sys.stdlib_module_names <= allowed


@EVERY_CLIENT
def test_a_client_names_no_registry(client: str) -> None:
    files = dict(test_repository.text_files(f"clients/{client}"))
    assert [name for name, text in files.items() if REGISTRY.search(text)] == []
