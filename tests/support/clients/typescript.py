"""The TypeScript client as apps have it. A machine without Node.js leaves out its tests."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support import npm
from tests.support.source import ROOT

FOLDER = ROOT / "clients" / "typescript"
STRICT = {
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "module": "nodenext",
    "target": "es2022",
}
NODE = {"lib": ["es2022"], "types": ["node"]}
"""Compiler options of an app of Node.js."""


def build() -> Path:
    """Build the package, and return its folder. Call it with the folder locked."""
    npm.install(FOLDER)
    npm.run("npm", "run", "build", cwd=FOLDER)
    return FOLDER / "dist"


def new_app(folder: Path) -> Path:
    """Make a folder an app with the types of Node.js. Return where the package has to be."""
    package = folder / "node_modules" / "@notifyproject" / "client"
    package.parent.mkdir(parents=True)
    (folder / "package.json").write_text('{"type": "module"}')
    for name in ("@types", "undici-types"):
        (folder / "node_modules" / name).symlink_to(FOLDER / "node_modules" / name)
    return package


def compile_app(folder: Path, *, files: Sequence[str], options: Mapping[str, Any] = NODE) -> None:
    """Compile files of an app under the strictest options. Fails the test with the errors."""
    project = {"compilerOptions": {**STRICT, **options}, "files": list(files)}
    (folder / "tsconfig.json").write_text(json.dumps(project))
    npm.run(str(FOLDER / "node_modules" / ".bin" / "tsc"), cwd=folder)
