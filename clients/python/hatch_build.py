"""Build hook: generates ``notifyproject_client/rest`` from ``openapi.yaml``."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GenerateRest(BuildHookInterface):
    """Runs openapi-python-client, which formats the generated code with ruff."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Replace ``rest`` by newly generated code. Raises CalledProcessError."""
        root = Path(self.root)
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
