# make up      the whole service on this machine, until Ctrl-C: http://127.0.0.1:8000 (or PORT=…)
# make down    stops one that runs in the background
# make test    every test, on servers it starts itself; TESTS="tests/delivery -k …" for some,
#              PYTHON=python3.12 with another Python, 3.11 or later
# make lint    style, types, layers, settings, migrations, API schema
# make fuzz    10,000 (or CASES=n) made-up requests to the API, answered as its description says
# make fuzz-templates   20,000 (or CASES=n) made-up templates: refused, or harmless, within 250 ms and 50 MB
# make client  update clients/python/openapi.yaml from the API, and install the client built from it
# make chaos   faults on purpose, all or SCENARIO=n, figures to JSON=file: docs/faults.md
# make screenshots   the pictures of docs/images, of a made-up day
# make bench   what it does in a second, beside a hand-written floor and a peer: docs/performance.md
# make audit   known holes in the libraries of a server, by pip-audit: needs the internet
# make requirements   compile the pinned requirements from their .in files

PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
UV_VERSION := 0.13.8
PIP_AUDIT_VERSION := 2.10.1
# One more than there are cores: a worker waits a third of its time for servers it starts.
TEST_WORKERS ?= $(shell echo $$(( $$(nproc) + 1 )))
export PORT

# The virtual environment's, once there is one.
PYTHON_NOW = $(or $(wildcard .venv/bin/python),$(PYTHON))

.PHONY: up down test lint fuzz fuzz-templates client chaos bench bench-servers audit requirements screenshots clean
.PHONY: python machine machine-for-tests
# What the machine lacks is said before anything is installed, by -j too.
.NOTPARALLEL:

up: machine .venv/local
	$(BIN)/python manage.py stack

down: .venv/local
	$(BIN)/python manage.py stack --stop

test: machine-for-tests .venv/dev .venv/client
	$(BIN)/python -m pytest -q -n $(TEST_WORKERS) --dist loadgroup $(TESTS)

lint: .venv/dev
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	env $(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING
	env $(PRODUCTION) $(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null

# Another seed at every run; a fault says with which.
fuzz: machine .venv/dev
	FUZZ_CASES=$(or $(CASES),10000) FUZZ_SEED=$(or $(SEED),$(shell date +%s)) \
	  $(BIN)/python -m pytest -q tests/fuzz -k every_answer

fuzz-templates: .venv/dev
	FUZZ_TEMPLATES=$(or $(CASES),20000) FUZZ_SEED=$(or $(SEED),$(shell date +%s)) \
	  $(BIN)/python -m pytest -q tests/fuzz/test_templates.py

client: .venv/dev
	env $(PRODUCTION) $(BIN)/python manage.py spectacular --file clients/python/openapi.yaml
	$(MAKE) .venv/client

chaos: machine .venv/local
	$(BIN)/python -m bench.chaos $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(JSON),--json $(JSON)) \
	  $(if $(PAGE),--page $(PAGE)) $(if $(SHORT),--short) $(if $(AT_ONCE),--at-once $(AT_ONCE))

bench: machine .venv/dev bench-servers
	$(BIN)/python -m bench $(or $(GOALS),all) $(if $(JSON),--json $(JSON))

# The providers of the benchmarks, nginx and Postfix's smtp-sink, and clocks that are wrong. Unpacked from
# Debian's packages,
# not installed: no daemon is set up or started. What they need and the machine lacks comes along.
bench-servers: .data/debian/usr/sbin/smtp-sink

.data/debian/usr/sbin/smtp-sink:
	mkdir -p .data/debian/packages/partial
	apt-get -qq update
	apt-get -qq install -y --download-only --reinstall --no-install-recommends \
	  -o Debug::NoLocking=1 -o Dir::Cache::archives=$(CURDIR)/.data/debian/packages nginx postfix libfaketime
	for package in .data/debian/packages/*.deb; do dpkg -x $$package .data/debian || exit 1; done

# Enough of a production environment for Django's checks; nothing is connected to.
PRODUCTION := DJANGO_SETTINGS_MODULE=notifyproject.settings.production \
  SECRET_KEY=not-a-secret-but-long-enough-to-pass-the-check-of-its-length-and-variety-0123 \
  INBOX_SIGNING_KEY=not-a-secret-either-but-another-one-than-that-0123 \
  FIELD_ENCRYPTION_KEYS=2026:bm90LWEtc2VjcmV0LWVpdGhlci1idXQtb2YtZW5vdWdoLWJ5dGVz \
  ALLOWED_HOSTS=notify.example.com PUBLIC_URL=https://notify.example.com \
  MONGODB_URI=mongodb://db.example.com/notify?replicaSet=rs0 REDIS_URL=redis://broker.example.com/0 \
  SENDGRID_API_KEY=SG.example SENDGRID_WEBHOOK_PUBLIC_KEY=example

# Known holes in what is installed on a server. It asks pypi.org, so it is no part of lint.
audit: .venv/dev
	$(BIN)/uv tool run pip-audit==$(PIP_AUDIT_VERSION) --require-hashes --disable-pip \
	  -r requirements-tracing.txt

requirements: .venv/dev
	for name in requirements requirements-local requirements-tracing requirements-dev; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-emit-index-url $$name.in -o $$name.txt || exit 1; done

# PYTHON=… on the command line asks for that Python: a .venv of another one is made anew.
version = $(shell $(1) -c 'import platform; print(platform.python_version())' 2>/dev/null)
ifeq ($(origin PYTHON),command line)
ifneq ($(call version,$(PYTHON)),)
ifneq ($(call version,$(PYTHON)),$(call version,$(BIN)/python))
$(shell rm -rf .venv)
endif
endif
endif

# A stamp for each set of requirements: installed again only when it changes. uv installs in
# seconds what takes pip a minute and a half; where it cannot (a private index in pip's own
# configuration), pip does it.
.venv/bin/python: | python
	$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

.venv/local .venv/dev: .venv/%: requirements-%.txt | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $< \
	  || $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

# Its build generates code from openapi.yaml, so it is built again whenever one of its files changes.
.venv/client: .venv/dev $(wildcard clients/python/*.* clients/python/notifyproject_client/*.py)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall ./clients/python
	touch $@

screenshots: machine-for-tests .venv/dev
	$(BIN)/python -m pytest -q tests/browser/screenshots.py

python:
	@command -v $(PYTHON_NOW) >/dev/null || { \
	  echo "This machine lacks $(PYTHON): run \`apt install python3-venv\`, then try again." >&2; exit 1; }
	@$(PYTHON_NOW) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "Python 3.11 or later is needed, and $(PYTHON) is %d.%d: set PYTHON, as in make PYTHON=python3.12" \
	  % sys.version_info[:2])'

# Shared libraries, and the browser of the tests: root has apt install what is missing.
machine: python
	@$(PYTHON_NOW) notifyproject/stack/prerequisites.py up

machine-for-tests: python
	@$(PYTHON_NOW) notifyproject/stack/prerequisites.py test

clean:
	rm -rf .venv .data
