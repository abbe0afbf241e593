"""Build hook: makes ``notifyproject_client/rest`` of ``openapi.yaml``, and copies the rules."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RULES = (
    "type_rules.py",
    "design_rules.py",
    "messages.py",
    "plurals.py",
    "colours.py",
    "schema_changes.py",
    "sms.py",
)


def _copy_rules(root: Path) -> None:
    """Copy the service's rules about types. A source distribution has them already."""
    folder = root / "notifyproject_client" / "cli" / "rules"
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").write_text('"""Copied from the service."""\n', encoding="utf-8")
    for name in RULES:
        source = root.parent.parent / "domain" / name
        if source.is_file():
            shutil.copyfile(source, folder / name)


class GenerateRest(BuildHookInterface):
    """Runs openapi-python-client, which formats the generated code with ruff."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Replace ``rest`` by newly generated code. Raises CalledProcessError."""
        root = Path(self.root)
        _copy_rules(root)
        output = root / "notifyproject_client" / "rest"
        shutil.rmtree(output, ignore_errors=True)
        scripts = sysconfig.get_path("scripts")
        subprocess.run(
            [
                *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
                *("--config", str(root / "generator.yaml"), "--path", str(root / "openapi.yaml")),
                *("--output-path", str(output)),
            ],
            check=True,
            env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"},
        )
