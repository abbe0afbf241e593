"""A migration stands alone: a later change of the product doesn't change what it did."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source import ROOT
from tests.support.tables import each_case

MIGRATIONS = sorted(
    path
    for folder in (*ROOT.glob("*/migrations"), *ROOT.glob("notifyproject/mongo_migrations/*"))
    for path in folder.glob("0*.py")
)
PACKAGES = {path.parent.name for path in ROOT.glob("*/__init__.py")}
INFRASTRUCTURE = ("notifyproject.db", "notifyproject.platform.encryption")
"""What a migration may call: access to MongoDB, and the keys of the installation."""


def live_code(path: Path) -> Iterator[str]:
    """Yield what a migration takes from the product's packages, other than field arguments.

    Django writes ``import domain.states`` for a choice or an embedded model of a field, which it
    needs to build the state of the models. Such a name may be used in the operations alone.
    """
    tree = ast.parse(path.read_text())
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names if name.name.split(".")[0] in PACKAGES}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
            is_live = node.module.split(".")[0] in PACKAGES
            if is_live and not any(name.startswith(INFRASTRUCTURE) for name in named):
                yield node.module
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and statement.name == "Migration":
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in modules:
                yield ast.unparse(node)


@each_case("path", MIGRATIONS)
def test_migration_imports_no_live_code(path: Path) -> None:
    assert not list(live_code(path))


@pytest.mark.parametrize(
    "source",
    [
        "from recipients.registration import name_words",
        "from domain import states",
        "import domain.states\n\ndef change(_apps, _editor):\n    return domain.states.Channel\n",
        "from notifyproject.platform import cache",
    ],
)
def test_live_code_is_found(source: str, tmp_path: Path) -> None:
    path = tmp_path / "0001_new.py"
    path.write_text(source)
    assert list(live_code(path))
