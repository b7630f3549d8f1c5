"""The software bill of materials of a release: CycloneDX 1.6, as JSON.

It lists what the locked runtime consists of, and what others wrote and the package carries: the vendored files of the
dashboard, of the API's pages and of the client checks. Nothing in it depends on the machine or the moment. A package
has the hashes of all of its files that the lock permits, and the licence as its own metadata state it. There are no
addresses of registries: a package URL names the package.
"""

import datetime as dt
import json
import re
import tomllib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Final

# The service, and what its extensions need besides.
LOCKS: Final = ("requirements/runtime.txt", "requirements/extensions.txt")
# What is carried unchanged, each with a manifest.
VENDORED: Final = (
    "src/postroad/api/static/manifest.toml",
    "src/postroad/dashboard/assets/vendor/manifest.toml",
    "src/postroad/services/messages/caniemail/manifest.toml",
)
_PIN: Final = re.compile(r"^([a-z0-9-]+)==(\S+)")
# What is only installed on other systems.
_ELSEWHERE: Final = re.compile(r"^\S+ ; .*sys_platform == ")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_USER: Final = re.compile(r"^    # +(?:via )?(-r (?:runtime|extensions)\.in|[a-z0-9-]+)$")

Component = dict[str, Any]


class SbomError(Exception):
    """The bill cannot be complete."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A package of the locks, and what needs it: `-r runtime.in` is the service, `-r extensions.in` an extension."""

    name: str
    version: str
    hashes: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class Release:
    """What the bill is of."""

    version: str
    commit: str
    seconds: int  # of the commit, since 1970

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/postroad@{self.version}"


def text(root: Path, release: Release) -> str:
    """The bill of the files below a folder."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = _merged(pin for lock in LOCKS for pin in read_lock((root / lock).read_text(encoding="utf-8")))
    extensions = [_extension(file, release) for file in sorted(root.glob("extensions/*/pyproject.toml"))]
    packages = [*(_package(pin) for pin in pins), *extensions]
    vendored = [component for manifest in VENDORED for component in _vendored(root, manifest)]
    made_at = dt.datetime.fromtimestamp(release.seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{release.purl}#{release.commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": made_at,
            "component": {
                "type": "application",
                "bom-ref": release.purl,
                "name": project["name"],
                "version": release.version,
                "description": project["description"],
                "licenses": [{"expression": project["license"]}],
                "purl": release.purl,
                "externalReferences": [{"type": "vcs", "url": project["urls"]["Repository"]}],
                "properties": [{"name": "postroad:commit", "value": release.commit}],
            },
        },
        "components": [*packages, *vendored],
        "dependencies": _dependencies(release, pins, vendored, extensions),
    }
    return json.dumps(bill, indent=2, ensure_ascii=False) + "\n"


def read_lock(lock: str) -> Sequence[Pin]:
    """The packages of a lock file."""
    pins: list[Pin] = []
    for line in lock.splitlines():
        if _ELSEWHERE.search(line):
            pins.append(Pin("", ""))
        elif pin := _PIN.match(line):
            pins.append(Pin(pin[1], pin[2]))
        elif digest := _HASH.search(line):
            pins[-1].hashes.append(digest[1])
        elif user := _USER.match(line):
            pins[-1].users.append(user[1])
    return [pin for pin in pins if pin.name]


def _merged(pins: Iterable[Pin]) -> Sequence[Pin]:
    """Each package once, with all that need it."""
    found: dict[str, Pin] = {}
    for pin in pins:
        found.setdefault(pin.name, pin).users.extend(user for user in pin.users if user not in found[pin.name].users)
    return list(found.values())


def _extension(file: Path, release: Release) -> Component:
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    purl = f"pkg:pypi/{project['name']}@{release.version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": project["name"],
        "version": release.version,
        "scope": "optional",
        "licenses": [{"expression": project["license"]}],
        "purl": purl,
    }


def _package(pin: Pin) -> Component:
    return {
        "type": "library",
        "bom-ref": pin.purl,
        "name": pin.name,
        "version": pin.version,
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in pin.hashes],
        "licenses": [_licence(pin)],
        "purl": pin.purl,
    }


def _licence(pin: Pin) -> Mapping[str, Any]:
    """The licence in the metadata of the installed package."""
    try:
        found = metadata.metadata(pin.name)
    except metadata.PackageNotFoundError:
        raise SbomError(
            f"{pin.name} {pin.version} is not installed, so its licence is not known; release with Python 3.11 on Linux"
        ) from None
    if found["Version"] != pin.version:
        raise SbomError(f"{pin.name} is installed as {found['Version']}, but locked as {pin.version}")
    if "License-Expression" in found:
        return {"expression": found["License-Expression"]}
    classifiers = [line for line in found.get_all("Classifier") or [] if line.startswith("License ::")]
    stated = " OR ".join(classifier.rpartition(" :: ")[2] for classifier in classifiers)
    if "License" in found:
        stated = found["License"]
    if not stated or "\n" in stated:
        raise SbomError(f"{pin.name} {pin.version} states no licence")
    return {"license": {"name": stated}}


def _vendored(root: Path, manifest: str) -> Iterator[Component]:
    for entry in tomllib.loads((root / manifest).read_text(encoding="utf-8")).values():
        purl = _npm_purl(entry["package"], entry["version"])
        yield {
            "type": "library",
            "bom-ref": f"{purl}#vendored",
            "name": entry["package"],
            "version": entry["version"],
            "scope": "required",
            "licenses": [{"license": {"id": entry["licence"]}}],
            "purl": purl,
            "components": [
                {
                    "type": "file",
                    "bom-ref": f"{purl}#{file}",
                    "name": file,
                    "hashes": [{"alg": "SHA-256", "content": digest}],
                }
                for file, digest in entry["sha256"].items()
            ],
        }


def _npm_purl(package: str, version: str) -> str:
    return f"pkg:npm/{package.replace('@', '%40')}@{version}"


def _dependencies(
    release: Release, pins: Sequence[Pin], vendored: Sequence[Component], extensions: Sequence[Component]
) -> Sequence[Mapping[str, Any]]:
    def needed_by(user: str) -> list[str]:
        return [pin.purl for pin in pins if user in pin.users]

    own = [*needed_by("-r runtime.in"), *(component["bom-ref"] for component in (*vendored, *extensions))]
    return [
        {"ref": release.purl, "dependsOn": own},
        # Only that one needs more than the service.
        *(
            {"ref": one["bom-ref"], "dependsOn": needed_by("-r extensions.in") if one["name"] == "postroad-mcp" else []}
            for one in extensions
        ),
        *({"ref": pin.purl, "dependsOn": needed_by(pin.name)} for pin in pins),
    ]
