"""Each native library of the service is listed with what limits its input, or why it gets none.

Native code that overflows its stack ends the process, where Python raises an exception.
"""

import ast
import re
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from tests.support.source import ROOT, SERVICE, files, nodes
from tests.support.tables import each_case

_NATIVE = re.compile(r"\.(so|pyd|dylib)(\.|$)")
LIMITED = {
    "css-inline": [
        ("notifications/content/inliner.py", "MAX_STACK_BYTES"),
        ("notifications/content/markup.py", "MAX_NESTING"),
    ],
    "jsonschema-rs": [
        ("api/http/body.py", "MAX_DEPTH"),
        ("notifications/catalog/definitions.py", "schemas.MAX_DEPTH"),
        ("notifications/catalog/schemas.py", "MAX_DEFINITIONS"),
        ("notifications/catalog/schemas.py", "MAX_PATTERN_BYTES"),
    ],
    "msgspec": [
        ("api/http/body.py", "MAX_DEPTH"),
        ("api/http/body.py", "MAX_PROPERTIES"),
        ("providers/sendgrid/webhooks.py", "RecursionError):"),
    ],
    "pycurl": [
        ("providers/http_client.py", "MAX_BODY"),
        ("providers/http_client.py", "MAX_HEADER_BYTES"),
    ],
    "pymongo": [("api/http/body.py", "MAX_DEPTH")],
}
"""Libraries that meet user input, and the limits in front of them, as file and text."""
HARMLESS = {
    "cryptography": "hashes, ciphers, and signatures over bytes of a limited body, no recursion",
    "greenlet": "switches between requests, whose frames of C it saves; it gets no input",
    "hiredis": "the broker's answers",
    "markupsafe": "replaces five characters in a loop, without recursion",
    "pyyaml": "reads the release's own files",
}
"""Libraries that the service's own packages use on data that can't end a process."""
UNUSED = {
    "aiohttp": "pyfcm's transport, which is replaced: decision 8",
    "cffi": "cryptography's, for generated bindings",
    "charset-normalizer": "requests', for texts of an unknown encoding",
    "frozenlist": "aiohttp's",
    "multidict": "aiohttp's",
    "propcache": "aiohttp's",
    "protobuf": "the trace exporter's, which only encodes",
    "rpds-py": "jsonschema's, for drf-spectacular's own document",
    "wcwidth": "the command line's of Celery",
    "yarl": "aiohttp's",
}
"""Libraries that no file of the service imports, and whose they are."""
IMPORTED_BY = {
    "css_inline": {"notifications/content/inliner.py"},
    "greenlet": {"notifyproject/lockstep.py"},
    "jsonschema_rs": {"notifications/catalog/schemas.py"},
    "pycurl": {"providers/http_client.py"},
}
"""The only files that may call a library that needs a limit for each call."""
MODULES = {"protobuf": "google.protobuf", "pyyaml": "yaml", "rpds-py": "rpds"}


def pinned() -> set[str]:
    exports = [path.read_text() for path in sorted(ROOT.glob("requirements*.txt"))]
    return set(re.findall(r"^([\w.-]+)==", "\n".join(exports), re.MULTILINE))


def native() -> set[str]:
    """Return the pinned distributions with native code."""
    found = set()
    for name in pinned():
        try:
            contents = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            # It is for another Python or platform.
            continue
        if any(_NATIVE.search(content.name) for content in contents):
            found.add(name)
    return found


def importers(module: str) -> set[str]:
    """Return the service's files that import a module or a part of it."""
    return {
        str(path)
        for path in files(*SERVICE)
        if any(f"{name}.".startswith(f"{module}.") for name in _imported(path))
    }


@cache
def _imported(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return frozenset(found)


def test_each_native_library_is_listed() -> None:
    listed = {*LIMITED, *HARMLESS, *UNUSED}
    assert native() - listed == set(), "say what limits its input"
    assert listed - pinned() == set(), "they are gone"


@pytest.mark.parametrize("library", LIMITED)
def test_named_limits_exist(library: str) -> None:
    for path, limit in LIMITED[library]:
        assert limit in (ROOT / path).read_text(), path


@each_case("library", UNUSED)
def test_unused_libraries_are_not_imported(library: str) -> None:
    assert importers(MODULES.get(library, library.replace("-", "_"))) == set()


@pytest.mark.parametrize("module", IMPORTED_BY)
def test_limited_library_is_called_behind_its_limit(module: str) -> None:
    assert importers(module) == IMPORTED_BY[module]
