"""Our source files as text and syntax trees."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
SERVICE = (
    "access",
    "api",
    "tasks",
    "callbacks",
    "console",
    "delivery",
    "devices",
    "domain",
    "monitoring",
    "notifications",
    "notifyproject",
    "privacy",
    "providers",
    "recipients",
    "rooms",
    "wizard",
)
EVERYTHING = (*SERVICE, "bench", "sandbox", "tests")


def files(*folders: str) -> list[Path]:
    """Return the Python files below these folders, without migrations."""
    return sorted(
        path.relative_to(ROOT)
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if not {"migrations", "mongo_migrations"} & set(path.parts)
    )


@cache
def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file, because a walk through all files takes seconds."""
    return tuple(ast.walk(tree(path)))


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Yield each method call of a file with its place, as ``path:line``."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield f"{path}:{node.lineno}", node
