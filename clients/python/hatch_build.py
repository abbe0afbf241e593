"""Build hook: makes ``notifyproject_client/rest`` of ``openapi.yaml``, and copies the rules."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from ruamel.yaml import YAML

RULES = (
    "type_rules.py",
    "design_rules.py",
    "messages.py",
    "plurals.py",
    "colours.py",
    "schema_changes.py",
    "sms.py",
)


TESTING_RULES = (
    "addresses.py",
    "channels",
    "errors.py",
    "hosts.py",
    "identifiers.py",
    "languages.py",
    "states.py",
    "time.py",
    "zones.py",
)
METHODS = ("get", "put", "post", "patch", "delete")


def _copy_rules(root: Path) -> None:
    """Copy the service's rules about types and requests. A source distribution has them already."""
    client, service = root / "notifyproject_client", root.parent.parent
    for package, names in (("cli", RULES), ("testing", TESTING_RULES)):
        folder = client / package / "rules"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text('"""Copied from the service."""\n', encoding="utf-8")
        for name in names:
            source = service / "domain" / name
            if source.is_dir():
                shutil.rmtree(folder / name, ignore_errors=True)
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, folder / name, ignore=ignored)
            elif source.is_file():
                shutil.copyfile(source, folder / name)
    validation = service / "notifications" / "validation.py"
    if validation.is_file():
        text = validation.read_text(encoding="utf-8").replace("from domain.", "from .")
        (client / "testing" / "rules" / "validation.py").write_text(text, encoding="utf-8")


def _write_document(root: Path) -> None:
    """Write what the service in memory knows of the API, which is read faster than YAML."""
    document = YAML(typ="safe").load(root / "openapi.yaml")
    parts = document["components"]

    def resolved(part: Any) -> Any:
        while "$ref" in part:
            _, _, section, name = part["$ref"].split("/")
            part = parts[section][name]
        return part

    operations, problems = [], {}
    for path, item in document["paths"].items():
        for method, operation in ((name, item[name]) for name in METHODS if name in item):
            parameters = [resolved(one) for one in operation.get("parameters", ())]
            required = [one["name"] for one in parameters if one.get("required")]
            body = operation.get("requestBody", {})
            found = {
                code: resolved(example)["value"]
                for answer in operation["responses"].values()
                for kind, content in resolved(answer).get("content", {}).items()
                for code, example in content.get("examples", {}).items()
                if kind == "application/problem+json"
            }
            problems |= found
            operations.append(
                {
                    "name": operation["operationId"],
                    "method": method.upper(),
                    "path": path,
                    "query": {
                        one["name"]: one["schema"] for one in parameters if one["in"] == "query"
                    },
                    "needs_key": "Idempotency-Key" in required,
                    "refuses_test_keys": "test_key" in found,
                    "body": body.get("content", {}).get("application/json", {}).get("schema"),
                    "is_body_required": body.get("required", False),
                }
            )
    kept = {
        "operations": operations,
        "problems": {
            code: {name: problem[name] for name in ("status", "title", "detail")}
            for code, problem in problems.items()
        },
        "schemas": parts["schemas"],
    }
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"), default=str)
    output = root / "notifyproject_client" / "testing" / "api.json"
    output.write_text(text, encoding="utf-8")


class GenerateRest(BuildHookInterface):
    """Runs openapi-python-client, which formats the generated code with ruff."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Replace ``rest`` by newly generated code. Raises CalledProcessError."""
        root = Path(self.root)
        _copy_rules(root)
        _write_document(root)
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
