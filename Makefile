# Postroad: what a developer types. `make` alone prints this as a list.
#
# Everything happens in .venv, which the first target makes. Packages come from the lock files in requirements/, by hash
# and as wheels only, so nothing is compiled and nothing unpinned runs. A stamp in .venv remembers which lock is installed.

# What .venv is made with. It keeps its Python until another one is named: `make run PYTHON=python3.14`.
PYTHON ?= python3
# Parallel test workers: five for two cores, because many tests wait. `make test WORKERS=0` runs in one process, which
# a debugger needs.
WORKERS ?= 5
# More arguments: `make run ARGS="--http 127.0.0.1:9025"`, `make test ARGS="tests/storage -k ledger"`.
ARGS ?=
# How long two customers live side by side at the end of `make chaos`, on both engines at once.
MINUTES ?= 10
# `make test-all` multiplies examples, seeds and crash points by this.
SCALE ?= 10
# The release before, for `make test-packages`. Without one, the commit from which on databases can be migrated.
PREVIOUS ?= baseline
# What builds the image: docker, podman or buildah.
BUILDER ?= docker
UV_VERSION := 0.13.7

VENV := .venv
BIN := $(VENV)/bin
# The newest Python that is supported, where Debian's packages put it for a machine with an older one, and its environment.
NEWEST := 3.14
NEWEST_PYTHON := .cache/python$(NEWEST)/usr/bin/python$(NEWEST)
NEWEST_VENV := .venv-newest
# The Python of the environment that is there.
MADE := $(shell sed -n 's/^version *= *\([0-9]*\.[0-9]*\).*/\1/p' $(VENV)/pyvenv.cfg 2>/dev/null)
RUNTIME := $(VENV)/.runtime-installed
DEVELOPMENT := $(VENV)/.development-installed
# Five workers that begin together would each rewrite the assertions of every file.
COMPILED := $(VENV)/.tests-compiled
# What browser tests need and Python cannot bring. Without it they are left out, and the end of the run says so.
CHROMIUM := $(VENV)/.headless-chromium-looked-for
AXE := tests/browser/node_modules/axe-core/axe.min.js
# A real ACME server for the tests of certificates.
PEBBLE := $(VENV)/.pebble-looked-for
# A connection pooler, which may be between the service and PostgreSQL.
PGBOUNCER := $(VENV)/.pgbouncer-looked-for
# What the clients are written in, and what only their tests need.
LANGUAGES := $(VENV)/.languages-looked-for
TYPESCRIPT := clients/javascript/node_modules/typescript/package.json
# Packages of other services, which must work with ours.
COMPAT := tests/compat/node_modules/.package-lock.json
# What builds the documentation needs other versions of what the tests need, so it has an environment of its own.
DOCS := .venv-docs
DOCS_INSTALLED := $(DOCS)/.installed
# The same for what looks at a release from outside.
RELEASE := .venv-release
RELEASE_INSTALLED := $(RELEASE)/.installed
# The locks of what the service, its development and its release consist of.
LOCKS := runtime extensions build development docs release
# The locks of npm whose packages reach others: developers of the JavaScript client, and who copies an example. Tests have more.
NPM_LOCKS := clients/javascript examples/nextjs-react-email
# Mail servers that benchmarks measure beside ours: from npm, and from Debian, which installs only one at a time.
HARAKA := benchmarks/haraka/node_modules/Haraka/package.json
MTA := benchmarks/mta/.unpacked
INSTALL := $(BIN)/python -m pip --disable-pip-version-check -qq --no-input install --no-warn-script-location
INSTALL_LOCKED := $(INSTALL) --no-compile --require-hashes --only-binary :all:
EXTENSIONS := extensions/mcp extensions/postmark extensions/resend
INSTALL_SELF := $(INSTALL) --no-deps --no-build-isolation --editable . $(addprefix --editable ,$(EXTENSIONS))
SOURCES := src extensions tests benchmarks clients release
# Tests that need neither a database nor a network.
PURE := tests/model tests/protocol
FAST := $(PURE) tests/concurrency tests/test_config.py tests/test_errors.py
# What the newest Python runs in a few minutes: tests that start no process, without PostgreSQL, and `postroad dev` as a
# developer uses it.
ON_NEWEST := $(FAST) tests/web tests/network tests/telemetry tests/simulator tests/storage tests/services tests/webhooks \
	tests/cli/test_dev.py

# Hundreds of processes import the same modules: compile them once, in one folder, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode

# Only the download has a limit, for networks that hang: killing dpkg half-way leaves the whole system broken.
define APT_INSTALL
sh -c 'export DEBIAN_FRONTEND=noninteractive; dpkg --configure -a; \
	timeout 1800 sh -c "apt-get update -qq; apt-get install -y -qq --no-install-recommends --download-only $$*"; \
	apt-get install -y -qq --no-install-recommends --no-download "$$@"' sh
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test test-fast test-newest test-all coverage test-clients chaos fuzz mutants check format lock bench bench-accept bench-batch bench-submission bench-deliver bench-backlog bench-growth bench-latency bench-codes bench-destinations bench-webhooks bench-memory bench-read bench-dashboard bench-cli bench-costs fairness simulate screenshots docs docs-tables release publish test-packages deb image audit clean

help: ## Print this list
	@echo "Postroad. Usage: make <target>"
	@echo
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F '|' '{ printf "  %-19s %s\n", $$1, $$2 }'

run: $(RUNTIME) ## Start the service for development on this machine; needs nothing but Python
	@$(BIN)/postroad dev $(ARGS)

test: $(DEVELOPMENT) $(COMPILED) $(CHROMIUM) $(PEBBLE) $(PGBOUNCER) $(LANGUAGES) $(AXE) $(TYPESCRIPT) $(COMPAT) ## Run the tests in parallel, on SQLite, on a temporary PostgreSQL server and in a real browser
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-fast: $(DEVELOPMENT) ## Run the unit tests of the pure packages, in about a minute
	@$(BIN)/python -m pytest -q -n 2 $(FAST) $(ARGS)

# In an environment of its own. A machine that cannot have that Python says so, and that nothing was proven.
test-newest: $(if $(filter $(NEWEST),$(MADE)),,$(NEWEST_PYTHON)) ## Run the tests that start no process, and `postroad dev`, on the newest Python, from Debian's packages
	@[ "$(MADE)" != $(NEWEST) ] || { echo "Python $(NEWEST) runs all tests here: make test"; exit 0; }; \
	[ -x $(NEWEST_PYTHON) ] || { echo "NOT PROVEN on Python $(NEWEST). Where you have it: make test PYTHON=python$(NEWEST)" >&2; exit 0; }; \
	$(MAKE) --no-print-directory test-fast VENV=$(NEWEST_VENV) PYTHON=$(CURDIR)/$(NEWEST_PYTHON) FAST="$(ON_NEWEST) -k 'not postgres'"

test-all: $(DEVELOPMENT) $(COMPILED) $(CHROMIUM) $(PEBBLE) $(PGBOUNCER) $(LANGUAGES) $(AXE) $(TYPESCRIPT) $(COMPAT) ## Run every test on both engines and at full size, with SCALE=10 times the examples
	@TEST_SCALE=$(SCALE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -o faulthandler_timeout=0 $(ARGS)

coverage: $(DEVELOPMENT) ## Measure the branch coverage of protocol and model by their own tests
	@$(BIN)/coverage run -m pytest -q -n 0 $(PURE) $(ARGS)
	@$(BIN)/coverage report

test-clients: $(DEVELOPMENT) $(LANGUAGES) $(TYPESCRIPT) ## Test the client libraries, and hold all of them to the same scenarios
	@$(BIN)/python -m clients.conformance $(ARGS)

chaos: $(DEVELOPMENT) ## Kill the service hundreds of times under load, on both engines, and prove that nothing is lost or mixed up
	@$(BIN)/python -m tests.chaos $(ARGS)
	@TEST_MINUTES=$(MINUTES) $(BIN)/python -m pytest -q -n 2 -o faulthandler_timeout=0 tests/security/test_tenants.py -k j6

fuzz: $(DEVELOPMENT) ## Look for inputs that break a reader, for five minutes, and keep those that reach something new
	@$(BIN)/python -m tests.fuzz $(ARGS)

mutants: $(DEVELOPMENT) ## Put small faults into modules and count those that tests notice
	@$(BIN)/python -m tests.mutants $(ARGS)

check: $(DEVELOPMENT) ## Check format, lint, strict types and import contracts
	@$(BIN)/ruff format --check --quiet $(SOURCES) || { echo "Some files are not formatted: run make format" >&2; exit 1; }
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(DEVELOPMENT) ## Format the code and mend what the linter can mend
	@$(BIN)/ruff check --fix-only --quiet $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

lock: $(BIN)/python ## Renew the lock files from requirements/*.in; UPGRADE=1 takes the newest versions
	@$(INSTALL) uv==$(UV_VERSION)
	@cd requirements && for name in $(LOCKS); do \
		echo "requirements/$$name.txt"; \
		UV_CUSTOM_COMPILE_COMMAND="make lock" ../$(BIN)/uv pip compile --quiet --universal --generate-hashes \
			--python-version 3.11 $(if $(UPGRADE),--upgrade) "$$name.in" --output-file "$$name.txt" || exit 1; \
	done

bench: $(DEVELOPMENT) $(HARAKA) $(MTA) ## Run all benchmarks, almost two hours, and write benchmarks/RESULTS.md; ARGS=--quick takes minutes
	@$(BIN)/python -m benchmarks $(ARGS)

bench-accept: $(DEVELOPMENT) $(HARAKA) $(MTA) ## Measure durable accepts a second over HTTP, beside five mail servers
	@$(BIN)/python -m benchmarks.accept $(ARGS)

bench-batch: $(DEVELOPMENT) ## Measure messages a second in batches of 100, compared with single sends
	@$(BIN)/python -m benchmarks.batch $(ARGS)

bench-submission: $(DEVELOPMENT) $(HARAKA) $(MTA) ## Measure durable accepts a second over SMTP, beside five mail servers
	@$(BIN)/python -m benchmarks.submission $(ARGS)

bench-deliver: $(DEVELOPMENT) $(HARAKA) $(MTA) ## Measure messages a second from the POST to the destination, beside five mail servers
	@$(BIN)/python -m benchmarks.deliver $(ARGS)

bench-backlog: $(DEVELOPMENT) ## Measure whether mail that waits slows the mail that does not
	@$(BIN)/python -m benchmarks.backlog_growth $(ARGS)

bench-growth: $(DEVELOPMENT) ## Measure how the cost of a message grows with accounts, destinations and stored mail
	@$(BIN)/python -m benchmarks.growth $(ARGS)

bench-latency: $(DEVELOPMENT) ## Measure how long a caller waits at ordinary load, beside Postfix
	@$(BIN)/python -m benchmarks.latency $(ARGS)

bench-codes: $(DEVELOPMENT) ## Measure how long a login code takes beside mail that waits
	@$(BIN)/python -m benchmarks.codes $(ARGS)

bench-destinations: $(DEVELOPMENT) ## Measure what a dead destination costs the others
	@$(BIN)/python -m benchmarks.destinations $(ARGS)

bench-webhooks: $(DEVELOPMENT) ## Measure webhooks a second, and what an endpoint that hangs costs the others
	@$(BIN)/python -m benchmarks.webhooks $(ARGS)

bench-memory: $(DEVELOPMENT) ## Measure the memory that 64 messages of 10 MiB take at the same time
	@$(BIN)/python -m benchmarks.memory $(ARGS)

bench-read: $(DEVELOPMENT) ## Measure how often a message can be asked for, alone and while others come in
	@$(BIN)/python -m benchmarks.read $(ARGS)

bench-dashboard: $(DEVELOPMENT) ## Measure how quick the dashboard answers with a million messages
	@$(BIN)/python -m benchmarks.dashboard $(ARGS)

bench-cli: $(DEVELOPMENT) ## Measure how long help, version, a request and a list of accounts take
	@$(BIN)/python -m benchmarks.commands $(ARGS)

bench-costs: $(DEVELOPMENT) ## Measure what a message costs, phase by phase
	@$(BIN)/python -m benchmarks.costs $(ARGS)

fairness: $(DEVELOPMENT) ## Attack the service as one account, and measure what another account notices; ARGS="--only batch" for one attack, ARGS=--write for benchmarks/attacks/RESULTS.md
	@$(BIN)/python -m benchmarks.attacks $(ARGS)

simulate: $(DEVELOPMENT) ## Simulate days of delivery with the real scheduler in virtual time; ARGS="outage --seed 2" replays one
	@$(BIN)/python -m benchmarks.simulation $(ARGS)

screenshots: $(DEVELOPMENT) $(CHROMIUM) ## Take the pictures of every page in docs/screenshots, and those of docs/troubleshooting.md
	@$(BIN)/python -m tests.browser.screenshots $(ARGS)
	@$(BIN)/python -m tests.browser.incident

docs-tables: $(DEVELOPMENT) ## Write the parts of the documentation that are made of the code: commands, settings, errors, events
	@$(BIN)/python -m tests.docs.generated

# The pages keep their paths below one folder, so that a link between any two of them works there as it does in the repository.
docs: $(DOCS_INSTALLED) ## Build the documentation into build/docs/site, a site that can be searched, and read without a web server
	@rm -rf build/docs && mkdir -p build/docs/source
	@find . \( -name '.?*' -o -name node_modules -o -name build -o -name dist -o -name target \) -prune -o -type f \
		\( -name '*.md' -o -name '*.png' -o -name '*.svg' -o -path './docs/*' -o -path './deploy/*' -o -path './examples/*' -o -name LICENSE \) -print0 \
		| tar --create --null --files-from=- | tar --extract --directory build/docs/source
	@SITE_NAME="Postroad $$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/postroad/__init__.py)" \
		$(DOCS)/bin/zensical build --strict --clean --config-file mkdocs.yml
	@echo "Open build/docs/site/index.html"

# By the commit alone: the same bytes on every machine.
release: $(RUNTIME) $(RELEASE_INSTALLED) ## Build all packages, bill of materials and checksums of this commit into dist/; ARGS=--complete to fail without one
	@$(BIN)/python -m release $(ARGS)
	@$(RELEASE)/bin/python -m release.schema dist/*.cdx.json

publish: $(BIN)/python ## Check the release in dist/ and print what publishes it; ARGS="--ci FOLDER --image DIGEST --upload" does it
	@$(BIN)/python -m release.publish $(ARGS)

test-packages: $(DEVELOPMENT) $(COMPILED) ## Test the packages with all tools of this machine, and the upgrade from PREVIOUS: the file or address of a wheel, or a commit
	@PREVIOUS=$(PREVIOUS) TEST_SCALE=$(SCALE) $(BIN)/python -m pytest -n 2 -o faulthandler_timeout=0 tests/test_release.py tests/test_release_files.py tests/deploy $(ARGS)
	@$(BIN)/python -m tests.packages.debian_package

# With the Python of the environment, which has to be that of the Debian release.
deb: $(RUNTIME) ## Build the Debian package of this checkout into dist/
	@$(BIN)/python -m release.deb

# The build context has no history, so the version is passed. The format of Podman and Buildah's own has no health check.
image: ## Build the image postroad:latest of this checkout with BUILDER=docker, podman or buildah
	@version=$$(PYTHONPATH=src $(PYTHON) -c 'from postroad import build_version; print(build_version.to_build())') && \
	BUILDAH_FORMAT=docker $(BUILDER) build --build-arg VERSION="$$version" --file deploy/Dockerfile --tag postroad $(ARGS) .

# The databases of vulnerabilities are on the Internet. Strict: a package that cannot be looked up is a failure, not a pass. All
# locks are looked at before it fails.
audit: $(RELEASE_INSTALLED) ## Look for known vulnerabilities in everything that is locked, for Python and npm; needs the Internet
	@failed=; for name in $(LOCKS); do \
		echo "requirements/$$name.txt"; \
		$(RELEASE)/bin/pip-audit --strict --progress-spinner off --require-hashes --disable-pip --requirement "requirements/$$name.txt" $(ARGS) \
			|| failed=1; \
	done; \
	for folder in $(NPM_LOCKS); do \
		echo "$$folder/package-lock.json"; \
		npm audit --prefix "$$folder" --package-lock-only || failed=1; \
	done; \
	[ -z "$$failed" ]

clean: ## Remove the environment and what tools left behind; data of the service stays
	rm -rf $(VENV) $(NEWEST_VENV) $(DOCS) $(RELEASE) .cache tests/browser/node_modules clients/javascript/node_modules benchmarks/haraka/node_modules benchmarks/mta build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment is of one Python. When another one is named, or its own was replaced, it is recreated with all that is in it.
ASKED := $(if $(filter file,$(origin PYTHON)),$(BIN)/python,$(PYTHON))
ifneq ($(MADE),)
ifneq ($(MADE),$(shell $(ASKED) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null))
.PHONY: another-python
$(BIN)/python $(RUNTIME) $(DEVELOPMENT) $(DOCS_INSTALLED) $(RELEASE_INSTALLED): another-python
endif
endif

# --clear: a .venv whose Python has gone is recreated, not repaired.
$(BIN)/python:
	@$(PYTHON) -c '' >/dev/null 2>&1 || { echo "Postroad needs Python 3.11 or newer; '$(PYTHON)' was not found, or does not run. Try: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Postroad needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Try: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "'$(PYTHON)' cannot make environments: its modules venv and ensurepip are missing. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv --clear $(VENV)

$(RUNTIME): requirements/runtime.txt requirements/extensions.txt requirements/build.txt pyproject.toml $(EXTENSIONS:=/pyproject.toml) | $(BIN)/python
	@echo "Installing what the service needs"
	@$(INSTALL_LOCKED) -r requirements/runtime.txt -r requirements/extensions.txt -r requirements/build.txt
	@$(INSTALL_SELF)
	@touch $@

$(DEVELOPMENT): requirements/development.txt pyproject.toml $(EXTENSIONS:=/pyproject.toml) | $(BIN)/python
	@echo "Installing what tests and checks need"
	@$(INSTALL_LOCKED) -r requirements/build.txt
	@$(INSTALL_LOCKED) --no-binary dkimpy --no-build-isolation -r requirements/development.txt
	@$(INSTALL_SELF)
	@touch $@ $(RUNTIME)

# What cannot be collected is reported by the run that follows.
$(COMPILED): | $(DEVELOPMENT)
	@echo "Compiling the tests"
	@ls -d tests/*/ extensions | xargs -n 6 -P 2 $(BIN)/python -m pytest -qq --collect-only -p no:cacheprovider >$@ 2>&1 || :

$(DOCS_INSTALLED): requirements/docs.txt | $(BIN)/python
	@echo "Installing what builds the documentation"
	@$(BIN)/python -m venv --clear $(DOCS)
	@$(DOCS)/bin/python -m pip --disable-pip-version-check -qq --no-input install --no-compile --require-hashes --only-binary :all: \
		-r requirements/docs.txt
	@touch $@

$(RELEASE_INSTALLED): requirements/release.txt | $(BIN)/python
	@echo "Installing what looks at a release"
	@$(BIN)/python -m venv --clear $(RELEASE)
	@$(RELEASE)/bin/python -m pip --disable-pip-version-check -qq --no-input install --no-compile --require-hashes --only-binary :all: \
		-r requirements/release.txt
	@touch $@

# Once, and only for root on a machine with apt-get, which is what CI is; on a developer's machine it is for them to do.
$(CHROMIUM): | $(BIN)/python
	@for name in "$$POSTROAD_CHROMIUM" chromium-headless-shell; do \
		command -v "$$name" >/dev/null && exit 0; done; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0; \
	echo "Installing Chromium for the browser tests"; \
	for package in chromium-headless-shell chromium; do \
		$(APT_INSTALL) $$package fonts-liberation </dev/null >/dev/null 2>&1 && exit 0; done; \
	for name in chromium chromium-browser google-chrome; do command -v "$$name" >/dev/null && exit 0; done; \
	echo "Chromium could not be installed; the browser tests will be left out" >&2
	@touch $@

$(PEBBLE): | $(BIN)/python
	@command -v pebble >/dev/null && exit 0; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0; \
	echo "Installing Pebble for the tests of certificates"; \
	$(APT_INSTALL) pebble </dev/null >/dev/null 2>&1 \
		|| echo "Pebble could not be installed; the tests of ACME will be left out" >&2
	@touch $@

# The package starts it as a service where there is a service manager, on a port that nothing here uses.
$(PGBOUNCER): | $(BIN)/python
	@command -v pgbouncer >/dev/null && exit 0; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0; \
	echo "Installing PgBouncer for the tests of PostgreSQL"; \
	$(APT_INSTALL) pgbouncer </dev/null >/dev/null 2>&1 \
		|| echo "PgBouncer could not be installed; its tests will be left out" >&2
	@touch $@

# The same for the languages of the clients. What is missing afterwards is named by the run.
$(LANGUAGES): clients/conformance/languages.py | $(DEVELOPMENT)
	@missing=$$($(BIN)/python -m clients.conformance --missing); \
	[ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0; \
	echo "Installing for the tests of the clients: $$missing"; \
	$(APT_INSTALL) $$missing </dev/null >/dev/null 2>&1 \
		|| echo "Not all of it could be installed" >&2
	@touch $@

$(TYPESCRIPT): clients/javascript/package-lock.json | $(LANGUAGES)
	@echo "Installing TypeScript and esbuild for the tests of the JavaScript client"
	@timeout 900 npm ci --prefix clients/javascript --ignore-scripts --fetch-retries 2 </dev/null >/dev/null 2>&1 && touch $@ \
		|| echo "TypeScript could not be installed; a test of the JavaScript client will fail" >&2

$(COMPAT): tests/compat/package-lock.json | $(LANGUAGES)
	@echo "Installing the packages of other services for the compatibility tests"
	@timeout 900 npm ci --prefix tests/compat --ignore-scripts --fetch-retries 2 </dev/null >/dev/null 2>&1 && touch $@ \
		|| echo "They could not be installed; compatibility tests will fail" >&2

# Without it a benchmark says that a peer is missing, and measures the rest.
$(HARAKA): benchmarks/haraka/package-lock.json
	@command -v npm >/dev/null || exit 0; \
	echo "Installing Haraka for the benchmarks"; \
	timeout 900 npm ci --prefix benchmarks/haraka --omit optional --ignore-scripts --fetch-retries 2 </dev/null >/dev/null 2>&1 \
		&& touch $@ || echo "Haraka could not be installed; the benchmarks will do without it" >&2

# Again when the way of doing it changes. What is there stays when that fails.
$(NEWEST_PYTHON): tests/newest_python.py benchmarks/debian_packages.py | $(BIN)/python
	@echo "Unpacking Python $(NEWEST) for the tests"
	@timeout 900 $(BIN)/python -m tests.newest_python $(NEWEST) .cache/python$(NEWEST) </dev/null || true

# Only root can start them, and only apt-get knows what they need.
$(MTA): benchmarks/peers/debian.py benchmarks/debian_packages.py | $(DEVELOPMENT)
	@[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0; \
	echo "Unpacking Exim, OpenSMTPD and chasquid for the benchmarks"; \
	timeout 900 $(BIN)/python -m benchmarks.peers.debian </dev/null && touch $@ \
		|| echo "Not all of them could be unpacked; the benchmarks will do without" >&2

# By the hashes of the lock. A failure leaves nothing behind: the next run tries again.
$(AXE): tests/browser/package-lock.json | $(LANGUAGES)
	@echo "Installing axe-core and oidc-provider for the browser tests"
	@timeout 900 npm ci --prefix tests/browser --ignore-scripts --fetch-retries 2 </dev/null >/dev/null 2>&1 && touch $@ \
		|| echo "They could not be installed; the accessibility tests and those of single sign-on will be left out" >&2
