"""The web packages: their tests, and the file that the service serves is built from the sources."""

import base64
import gzip
import hashlib
import json
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from tests.support import npm

WEB = Path(settings.BASE_DIR, "clients", "web")
VERSION = json.loads((WEB / "inbox" / "package.json").read_text())["version"]
STATIC = Path(settings.BASE_DIR, "static")
BUNDLE = STATIC / "inbox" / f"{VERSION}.js"
GUIDE = Path(settings.BASE_DIR, "docs", "guides", "inbox.md")
MAX_BYTES = {"inbox": 25 * 1024, "push-button": 5 * 1024, "push": 2 * 1024}
"""Of the compressed files, by folder. An app's page loads them."""


@pytest.mark.slow
def test_packages_pass_their_tests_and_give_the_served_file(tmp_path: Path) -> None:
    if not npm.is_installed():
        return  # The tests below hold the served file's hash everywhere.
    npm.install(WEB)
    npm.run("npm", "run", "check", cwd=WEB)
    npm.run("npm", "test", cwd=WEB)
    npm.run("node", "build.js", str(tmp_path), cwd=WEB)
    built = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.js")}
    assert built == {Path(name, f"{VERSION}.js") for name in MAX_BYTES}
    for path in built:
        assert (tmp_path / path).read_bytes() == (STATIC / path).read_bytes(), "run make web"


def test_served_files_are_small() -> None:
    for name, limit in MAX_BYTES.items():
        assert len(gzip.compress((STATIC / name / f"{VERSION}.js").read_bytes())) <= limit, name


def test_guide_names_the_file_and_its_hash() -> None:
    digest = base64.b64encode(hashlib.sha384(BUNDLE.read_bytes()).digest()).decode()
    text = GUIDE.read_text()
    assert f"/static/inbox/{BUNDLE.name}" in text
    assert f"sha384-{digest}" in text, "update the hash"


def test_page_of_any_origin_may_load_the_file() -> None:
    answer = Client().get(f"/static/inbox/{BUNDLE.name}")
    answer.close()
    assert (answer.status_code, answer["Access-Control-Allow-Origin"]) == (200, "*")
    assert answer["Content-Type"].startswith("text/javascript")
