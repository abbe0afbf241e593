"""No test depends on the machine's speed: only tests/support/waiting.py sleeps or measures."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support import waiting
from tests.support.source import files, text, tree

HELPER = Path("tests", "support", "waiting.py")
RUNNING = {"sleep", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "thread_time"}
"""Functions of the module ``time`` that wait or measure."""
LIMITED = {"join", "result", "wait"}
CANDIDATE = re.compile(r"\btime\b|timeout=\d|\.(join|result|wait)\(\d")
"""What each of the offences has in its text."""


def offences(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and kind of each dependence on the machine's speed."""
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in RUNNING:
                yield node.lineno, f"time.{name}"
            case ast.ImportFrom(module="time"):
                yield node.lineno, "an import from time"
            case ast.Assert(test=test) if any(map(_is_the_time, ast.walk(test))):
                yield node.lineno, "an assertion about the present time"
            case ast.Call(func=func, args=args, keywords=keywords):
                limits = [keyword.value for keyword in keywords if keyword.arg == "timeout"]
                if isinstance(func, ast.Attribute) and func.attr in LIMITED:
                    limits += args[:1]
                if any(map(_is_tight, limits)):
                    yield node.lineno, "a time limit that is neither to pass nor LIMIT"


def _is_the_time(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "time.time"


def _is_tight(node: ast.expr) -> bool:
    """Return whether a limit is too short for a busy machine and too long to wait for."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
        and waiting.SHORT < node.value < waiting.LIMIT
    )


def test_no_test_depends_on_machine_speed() -> None:
    found = [
        f"{path}:{line}: {what}"
        for path in files("tests")
        if path != HELPER and CANDIDATE.search(text(path))
        for line, what in offences(tree(path))
    ]
    assert found == []
