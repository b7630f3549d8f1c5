"""The table of languages: what each needs, how its driver is built and started, and how its own tests run.

In commands `{python}` is the Python that runs the suite and `{out}` a temporary folder. They run in the folder of the
client.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CLIENTS: Final = Path(__file__).parent.parent
Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Language:
    """One column of the table."""

    name: str
    title: str
    folder: str
    # Commands on the path, or files by their whole path.
    tools: Command
    # The packages of Debian that bring them.
    packages: Command
    driver: Command
    tests: Command | None
    # Frameworks that some tests need, and are skipped without: the package of Debian, and a file of it.
    frameworks: tuple[tuple[str, str], ...] = ()
    build: Command | None = None
    # Modules of Python, which come with `make`.
    modules: Command = ()
    # Without these the suite fails; the others may be missing on a developer's machine.
    is_required: bool = False
    # Whether its driver has the operation `call`.
    covers_api: bool = False

    @property
    def path(self) -> Path:
        """The client's folder."""
        return CLIENTS / self.folder

    @property
    def agent(self) -> str:
        """The name in `User-Agent`."""
        return f"postroad-{self.folder}"

    def missing(self) -> list[str]:
        """What this machine lacks."""
        tools = [tool for tool in self.tools if not (Path(tool).exists() if "/" in tool else shutil.which(tool))]
        return tools + [module for module in self.modules if importlib.util.find_spec(module) is None]

    def missing_packages(self) -> list[str]:
        """The packages of Debian that would bring that, and the frameworks of its tests."""
        frameworks = [package for package, file in self.frameworks if not any(Path("/").glob(file[1:]))]
        return [*(self.packages if self.missing() else ()), *frameworks]

    def remedy(self) -> str:
        """What would mend that."""
        return (
            f"apt-get install -y --no-install-recommends {' '.join(self.packages)}"
            if self.packages
            else "make test-clients"
        )

    def words(self, command: Command, *, out: Path) -> Sequence[str]:
        """A command with its places filled in."""
        return [word.replace("{python}", sys.executable).replace("{out}", str(out)) for word in command]


LANGUAGES: Final = (
    Language(
        name="python",
        title="Python",
        folder="python",
        tools=(),
        packages=(),
        driver=("{python}", "conformance/driver.py", "sync"),
        tests=("{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"),
        is_required=True,
        covers_api=True,
    ),
    Language(
        name="python-async",
        title="Python async",
        folder="python",
        tools=(),
        packages=(),
        modules=("aiohttp",),
        driver=("{python}", "conformance/driver.py", "async"),
        tests=None,
        is_required=True,
        covers_api=True,
    ),
    Language(
        name="javascript",
        title="JavaScript",
        folder="javascript",
        tools=("node", "npm"),
        packages=("nodejs", "npm"),
        driver=("node", "conformance/driver.mjs"),
        tests=("npm", "test"),
        is_required=True,
        covers_api=True,
    ),
    Language(
        name="php",
        title="PHP",
        folder="php",
        tools=("php", "phpunit"),
        packages=("php-cli", "phpunit"),
        frameworks=(
            ("php-symfony-mailer", "/usr/share/php/Symfony/Component/Mailer/autoload.php"),
            ("php-illuminate-mail", "/usr/share/php/Illuminate/Support/autoload.php"),
        ),
        driver=("php", "conformance/driver.php"),
        tests=("phpunit", "--do-not-cache-result", "tests"),
        covers_api=True,
    ),
    Language(
        name="go",
        title="Go",
        folder="go",
        tools=("go",),
        packages=("golang-go",),
        build=("go", "build", "-o", "{out}/driver", "./conformance"),
        driver=("{out}/driver",),
        tests=("go", "test", "./..."),
        covers_api=True,
    ),
    Language(
        name="ruby",
        title="Ruby",
        folder="ruby",
        tools=("ruby",),
        packages=("ruby",),
        frameworks=(
            ("ruby-actionmailer", "/usr/share/rubygems-integration/all/specifications/actionmailer-*.gemspec"),
            # For tests/compat: the gem of another service.
            ("ruby-postmark", "/usr/share/rubygems-integration/all/specifications/postmark-*.gemspec"),
        ),
        driver=("ruby", "-w", "-Ilib", "conformance/driver.rb"),
        tests=("ruby", "-w", "-Ilib", "-Itest", "-e", 'Dir["test/*_test.rb"].each { |file| require "./#{file}" }'),
        covers_api=True,
    ),
    Language(
        name="java",
        title="Java",
        folder="java",
        tools=("java", "javac", "/usr/share/java/junit-platform-console-standalone.jar"),
        packages=("default-jdk-headless", "junit5"),
        frameworks=(
            ("libspring-context-support-java", "/usr/share/java/spring3-context.support.jar"),
            # For tests/examples: what Keycloak sends with.
            ("libjakarta-mail-java", "/usr/share/java/jakarta-mail.jar"),
        ),
        build=("sh", "build.sh", "{out}"),
        driver=("java", "-cp", "{out}", "dev.postroad.Driver"),
        tests=("sh", "test.sh", "{out}"),
        covers_api=True,
    ),
)


def chosen(names: Sequence[str]) -> list[Language]:
    """The languages of these names, or all. Raises ValueError for a name that there is not."""
    known = {language.name: language for language in LANGUAGES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] or list(LANGUAGES)


def environment() -> dict[str, str]:
    """What tools run in: that of the caller, but nothing is fetched, and nothing is written beside the sources."""
    python_path = os.pathsep.join(filter(None, [str(CLIENTS / "python" / "src"), os.environ.get("PYTHONPATH")]))
    fixed = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "", "PYTHONDONTWRITEBYTECODE": "1"}
    # Programs that live for seconds are not worth compiling well.
    fixed["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
    return {**os.environ, **fixed, "PYTHONPATH": python_path}
