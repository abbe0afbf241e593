"""The tests of the example app pass at a service: days that take seconds."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from notifyproject_client.cli import command

from sandbox.assembly import Sandbox
from tests.clients.testing.test_plugin import run
from tests.support import npm
from tests.support.clients import typescript
from tests.support.clients.api import App, new_app
from tests.support.source import ROOT

EXAMPLES = ROOT / "examples"
PACKAGES = {"client": "dist", "testing": "testing/dist"}


@pytest.fixture
def tester(app: App, live_server: Any, provider: Sandbox, settings: Any, tmp_path: Path) -> App:
    """Return a test client of a service that has the types of the example."""
    settings.SANDBOX_URL = provider.url
    settings.SANDBOX_FCM_CREDENTIALS = str(provider.service_account)
    # A push writes a lock beside the types.
    shutil.copytree(EXAMPLES / "notify", tmp_path / "notify")
    words = ["push", "--publish", "--types", str(tmp_path / "notify" / "types")]
    environment = {"NOTIFY_URL": live_server.url, "NOTIFY_API_KEY": app.key}
    assert command.run(words, environment=environment) == 0
    return new_app("examples", is_test=True)


@pytest.mark.usefixtures("worker")
def test_python_suite_passes(tester: App, live_server: Any) -> None:
    code, said = run(EXAMPLES / "python", NOTIFY_URL=live_server.url, NOTIFY_KEY=tester.key)
    assert code == 0, said
    assert "7 passed" in said


def test_python_suite_passes_in_memory_but_for_what_takes_time() -> None:
    code, said = run(EXAMPLES / "python")
    assert (code, "2 passed" in said, "5 errors" in said) == (1, True, True), said
    assert said.count("The service in memory has no time: set NOTIFY_URL.") >= 5


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_typescript_suite_passes(tester: App, live_server: Any, tmp_path: Path) -> None:
    if not npm.is_installed():
        return
    with npm.alone_in(typescript.FOLDER):
        typescript.build()
    suite = shutil.copytree(EXAMPLES / "typescript", tmp_path / "typescript")
    modules = suite / "node_modules"
    (modules / "@notifyproject").mkdir(parents=True)
    for name, built in PACKAGES.items():
        shutil.copytree(typescript.FOLDER / built, modules / "@notifyproject" / name)
    for name in ("vitest", "vite"):
        (modules / name).symlink_to(typescript.FOLDER / "node_modules" / name)
    vitest = str(typescript.FOLDER / "node_modules" / ".bin" / "vitest")
    environment = {"NOTIFY_URL": live_server.url, "NOTIFY_KEY": tester.key}
    npm.run(vitest, "run", "--no-file-parallelism", cwd=suite, env=environment)
    said = npm.run(vitest, "run", cwd=suite)
    assert "5 skipped" in said
