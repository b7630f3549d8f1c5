"""Each package has what its registry demands, and docs/releasing.md says how each is published and where that is."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import postroad
from tests.clients import test_folders

ROOT = Path(__file__).parent.parent
PAGE = "".join((ROOT / name).read_text() for name in ("docs/releasing.md", "clients/RELEASING.md"))
SITE = "https://github.com/postroad/postroad"
AUTHORS = "The Postroad contributors"
# What a reader of the registry needs; a registry that has no place for one of them shows the files of the package.
WANTED = {"name", "license", "description", "homepage", "repository", "authors"}

Facts = Mapping[str, Any]


def read(name: str) -> str:
    return (ROOT / name).read_text()


def python(folder: str) -> Facts:
    project = tomllib.loads(read(f"{folder}pyproject.toml"))["project"]
    urls = project["urls"]
    return {
        "name": project["name"],
        "license": project["license"],
        "description": project["description"],
        "homepage": urls["Homepage"],
        "repository": urls["Repository"],
        "changelog": urls["Changelog"],
        "authors": project["authors"][0]["name"],
    }


def javascript() -> Facts:
    package = json.loads(read("clients/javascript/package.json"))
    return {**package, "authors": package["author"], "repository": package["repository"]["url"]}


def php() -> Facts:
    package = json.loads(read("clients/php/composer.json"))
    return {**package, "authors": package["authors"][0]["name"], "repository": package["support"]["source"]}


def ruby() -> Facts:
    text = read("clients/ruby/postroad.gemspec").replace("#{repository}", SITE).replace("= repository", f'= "{SITE}"')
    facts = dict(re.findall(r'^  spec\.(\w+) = \[?"(.+?)"\]?$', text, re.MULTILINE))
    uris = dict(re.findall(r'^    "(\w+)_uri" => "(.+?)"', text, re.MULTILINE))
    return {**facts, "repository": uris["source_code"], "changelog": uris["changelog"]}


def java() -> Facts:
    pom = read("clients/java/pom.xml").split("<properties>")[0]

    def text(path: str) -> str:
        inner = pom
        for tag in path.split("/"):
            (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", inner, re.DOTALL)[:1]
        return inner

    return {
        "name": f"{text('groupId')}:{text('artifactId')}",
        "title": text("name"),
        "license": text("licenses/license/name"),
        "description": text("description"),
        "homepage": text("url"),
        "repository": text("scm/url"),
        "scm": (text("scm/connection"), text("scm/developerConnection")),
        "authors": text("developers/developer/name"),
    }


PACKAGES: Mapping[str, tuple[str, Callable[[], Facts]]] = {
    "the service": ("postroad", lambda: python("")),
    "Python": ("postroad-client", lambda: python("clients/python/")),
    "JavaScript": ("postroad", javascript),
    "PHP": ("postroad/postroad-client", php),
    "Ruby": ("postroad", ruby),
    "Java": ("dev.postroad:postroad-client", java),
}
GO_MODULE = "github.com/postroad/postroad/clients/go"
EVERY_PACKAGE = pytest.mark.parametrize("package", PACKAGES)


@EVERY_PACKAGE
def test_a_package_says_what_it_is_whose_it_is_and_where_it_comes_from(package: str) -> None:
    name, facts_of = PACKAGES[package]
    facts = facts_of()
    assert facts.keys() >= WANTED
    assert (facts["name"], facts["license"], facts["authors"]) == (name, "Apache-2.0", AUTHORS)
    assert 30 < len(facts["description"]) < 200
    assert facts["homepage"].startswith(SITE)
    assert facts["repository"].removeprefix("git+").startswith(SITE)


def test_a_changelog_is_linked_where_the_registry_has_a_place_for_it() -> None:
    found = {package: facts_of().get("changelog") for package, (_, facts_of) in PACKAGES.items()}
    assert {package: link for package, link in found.items() if link} == {
        "the service": f"{SITE}/blob/main/CHANGELOG.md",
        "Python": f"{SITE}/blob/main/clients/python/CHANGELOG.md",
        "Ruby": f"{SITE}/blob/main/clients/ruby/CHANGELOG.md",
    }
    assert "CHANGELOG.md" in javascript()["files"]


def test_the_service_has_what_pypi_shows() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert project["urls"] == {
        "Homepage": SITE,
        "Documentation": f"{SITE}/tree/main/docs",
        "Repository": SITE,
        "Changelog": f"{SITE}/blob/main/CHANGELOG.md",
        "Issues": f"{SITE}/issues",
    }
    assert (project["readme"], project["license-files"]) == ("README.md", ["LICENSE"])
    assert {"keywords", "classifiers", "requires-python"} <= project.keys()
    # A licence is said once: PyPI refuses a classifier beside the expression.
    assert [one for one in project["classifiers"] if one.startswith("License ::")] == []


def test_npm_can_prove_from_which_folder_a_package_was_built() -> None:
    repository = {"type": "git", "url": f"git+{SITE}.git", "directory": "clients/javascript"}
    package = json.loads(read("clients/javascript/package.json"))
    assert package["repository"] == repository
    assert package["bugs"] == f"{SITE}/issues"
    assert "private" not in package


def test_packagist_takes_the_version_from_the_tag() -> None:
    assert php().get("version") is None
    assert (php()["type"], php()["autoload"]) == ("library", {"psr-4": {"Postroad\\": "src/"}})


def test_a_go_module_is_named_by_its_folder() -> None:
    assert read("clients/go/go.mod").splitlines()[0] == f"module {GO_MODULE}"


def test_a_gem_has_its_files_and_demands_a_second_factor() -> None:
    text = read("clients/ruby/postroad.gemspec")
    assert {"summary", "description"} <= ruby().keys()
    assert '"rubygems_mfa_required" => "true"' in text
    assert 'Dir["lib/**/*.rb", "sig/*.rbs", "README.md", "CHANGELOG.md", "LICENSE"]' in text


def test_maven_central_gets_scm_sources_javadoc_and_signatures() -> None:
    assert java()["title"] == "Postroad client"
    assert java()["scm"] == (f"scm:git:{SITE}.git", "scm:git:git@github.com:postroad/postroad.git")
    release = read("clients/java/pom.xml").split("<id>release</id>")[1]
    plugins = re.findall(r"<artifactId>maven-(\w+)-plugin</artifactId>", release)
    assert plugins == ["source", "javadoc", "gpg"]


def test_the_page_names_every_package_as_its_registry_does() -> None:
    rows = dict(re.findall(r"^\| ([\w ]+) \| [\w ]+ \| `([^`]+)` \|", PAGE, re.MULTILINE))
    assert rows == {package: name for package, (name, _) in PACKAGES.items()} | {"Go": GO_MODULE}


def test_the_page_names_every_place_of_a_version() -> None:
    listed = dict(re.findall(r"^  \| ([\w ]+) \| (.+) \|$", PAGE.split("## 3.")[0], re.MULTILINE))
    wanted = {
        client: {f"clients/{client}/{name}" for name in places} for client, places in test_folders.VERSION.items()
    }
    found = {client.lower(): set(re.findall(r"`([^`]+)`", places)) for client, places in listed.items()}
    assert {client: found[client] for client in wanted} == wanted
    assert f'__version__ = "{postroad.__version__}"' in read("src/postroad/__init__.py")


def test_the_page_names_only_files_that_exist() -> None:
    named = set(re.findall(r"`((?:clients|src|requirements|docs)/[\w./-]+\.\w+)`", PAGE))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []
