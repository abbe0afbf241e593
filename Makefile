# make up      the whole service on this machine, until Ctrl-C: http://127.0.0.1:8000 (or PORT=…)
# make down    stops one that runs in the background
# make test    every test, on servers it starts itself
# make lint    style, types, layers, settings, migrations, API schema
# make requirements   compile the pinned requirements from their .in files

PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
UV_VERSION := 0.13.8
export PORT

.PHONY: up down test lint requirements browser clean

up: .venv/local
	$(BIN)/python manage.py stack

down: .venv/local
	$(BIN)/python manage.py stack --stop

test: .venv/dev browser
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup

lint: .venv/dev
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	env $(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING
	env $(PRODUCTION) $(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null

# Enough of a production environment for Django's checks; nothing is connected to.
PRODUCTION := DJANGO_SETTINGS_MODULE=notifyproject.settings.production \
  SECRET_KEY=not-a-secret-but-long-enough-to-pass-the-check-of-its-length-and-variety-0123 \
  ALLOWED_HOSTS=notify.example.com PUBLIC_URL=https://notify.example.com \
  MONGODB_URI=mongodb://db.example.com/notify?replicaSet=rs0 REDIS_URL=redis://broker.example.com/0 \
  SENDGRID_API_KEY=SG.example SENDGRID_WEBHOOK_PUBLIC_KEY=example

requirements: .venv/dev
	for name in requirements requirements-local requirements-dev; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-emit-index-url $$name.in -o $$name.txt || exit 1; done

# A stamp for each set of requirements: installed again only when it changes. uv installs in
# seconds what takes pip a minute and a half; where it cannot (a private index in pip's own
# configuration), pip does it.
.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/local .venv/dev: .venv/%: requirements-%.txt | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $< \
	  || $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

# The browser tests drive Debian's Chromium.
browser:
	@command -v chromium >/dev/null || { \
	  echo "Installing chromium for the browser tests"; \
	  apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium >/dev/null; }

clean:
	rm -rf .venv .data
