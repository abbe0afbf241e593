"""The TypeScript client: its tests, what is published, and an app that installs it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import npm
from tests.support.clients.api import App
from tests.support.clients.typescript import FOLDER, NODE, build, compile_app, new_app
from tests.support.openapi import api_operations

MAX_BYTES = 15 * 1024
PACKED = {"README.md", "package.json", "index.js", "index.d.ts"}
PROJECTS = {
    "node": NODE,
    # Deno and Bun declare what browsers have.
    "web": {"lib": ["es2022", "dom"], "types": [], "noEmit": True},
}
"""Compiler options of apps that differ in where fetch and its types come from."""


@pytest.mark.slow
@pytest.mark.usefixtures("shipped_types")
def test_package_passes_its_tests_and_serves_an_app(
    app: App, live_server: Any, tmp_path: Path
) -> None:
    if not npm.is_installed():
        return
    with npm.alone_in(FOLDER):
        package = f"./{build().relative_to(FOLDER)}"
        npm.run("npm", "run", "check", cwd=FOLDER)
        npm.run("npm", "test", cwd=FOLDER)
        pack = ("npm", "pack", package, "--json", "--pack-destination", str(tmp_path))
        packed = _packed(npm.run(*pack, cwd=FOLDER))
        helpers = _packed(npm.run("npm", "pack", "./testing/dist", *pack[3:], cwd=FOLDER))
    assert {file["path"] for file in packed["files"]} == PACKED
    assert packed["size"] <= MAX_BYTES
    assert {file["path"] for file in helpers["files"]} >= PACKED

    lines = (FOLDER / "README.md").read_text().split("```")[1].removeprefix("ts\n")
    assert len(re.findall(r"\S.*\n", lines)) == 5
    folder = tmp_path / "app"
    installed = new_app(folder)
    installed.mkdir()
    tarball = str(tmp_path / packed["filename"])
    npm.run("tar", "-xzf", tarball, "--strip-components=1", cwd=installed)
    (folder / "app.ts").write_text((FOLDER / "test" / "app" / "app.ts").read_text())
    (folder / "readme.ts").write_text(lines.replace("http://127.0.0.1:8000", live_server.url))
    for name, options in PROJECTS.items():
        files = ["app.ts", "readme.ts"] if name == "node" else ["app.ts"]
        compile_app(folder, files=files, options=options)

    said = npm.run("node", "readme.js", cwd=folder, env={"NOTIFY_KEY": app.key})
    sent, _ = said.split()
    assert app.get(f"/notifications/{sent}").json()["type"] == "payment_confirmed"
    required = 'console.log(typeof require("@notifyproject/client").Notifier)'
    assert npm.run("node", "--eval", required, "--input-type=commonjs", cwd=folder) == "function\n"


def _packed(output: str) -> dict[str, Any]:
    """Return what npm says of the package that it packed."""
    found = json.loads(output)
    (packed,) = found if isinstance(found, list) else found.values()
    return packed


def test_lock_pins_what_generates_and_builds() -> None:
    wanted = json.loads((FOLDER / "package.json").read_text())["devDependencies"]
    locked = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert "dependencies" not in json.loads((FOLDER / "package.json").read_text())


def test_readme_names_every_hand_written_method() -> None:
    source = (FOLDER / "src" / "notifier.ts").read_text()
    text = (FOLDER / "README.md").read_text()
    methods = set(re.findall(r"^\t(?:async )?\*?([a-z]\w+)(?:<.*>)?\(", source, re.MULTILINE))
    methods -= {"constructor"}
    assert {name for name in methods if name not in text} == set()
    assert methods & api_operations().keys() == set()
