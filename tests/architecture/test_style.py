"""Rules for every file."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.support.source import EVERYTHING, ROOT, SERVICE, files, text

ALL = files(*EVERYTHING)
HERE = Path("tests", "architecture", "test_style.py")
PAGES = [p.relative_to(ROOT) for p in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]]
MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
SILENCERS = re.compile(r"#\s*(noqa|type:\s*ignore|pragma:\s*no cover|ruff:|mypy:)")
SKIPPING = re.compile(r"\b(pytest\.(mark\.)?(skip|skipif|xfail|importorskip)|unittest\.skip)\b")
CLOCKS = ("datetime.now(", "datetime.utcnow(", "timezone.now(", "date.today(")


def offenders(paths: Iterable[Path], offends: Callable[[Path], object]) -> list[str]:
    """Return the files, other than this file, for which the predicate is true."""
    return [str(path) for path in paths if path != HERE and offends(path)]


def test_files_are_found() -> None:
    assert len(ALL) > 150
    assert len(PAGES) > 5


def test_no_unfinished_work_is_marked() -> None:
    assert offenders([*ALL, *PAGES], lambda path: MARKS.search(text(path))) == []


def test_no_checker_is_silenced_in_a_file() -> None:
    assert offenders(ALL, lambda path: SILENCERS.search(text(path))) == []


def test_no_test_is_skipped() -> None:
    assert offenders(files("tests"), lambda path: SKIPPING.search(text(path))) == []


def test_no_test_changes_the_process_id_that_libraries_read() -> None:
    """The threads of PyMongo would abandon their connections without closing them."""
    pattern = re.compile(r"""setattr\(("os\.|os, ")getpid""")
    assert offenders(files("tests"), lambda path: pattern.search(text(path))) == []


def reads_environment(path: Path) -> bool:
    """Return whether a file reads environment variables. Setting a default doesn't count."""
    others = text(path).replace("os.environ.setdefault(", "")
    return "os.environ" in others or "getenv(" in others


def test_only_settings_and_stack_read_the_environment() -> None:
    allowed = {("notifyproject", "settings"), ("notifyproject", "stack")}
    others = [path for path in files(*SERVICE) if path.parts[:2] not in allowed]
    assert offenders(others, reads_environment) == []


def test_notifications_read_the_clock_in_one_place() -> None:
    one_place = Path("notifications", "timing.py")
    others = [path for path in files("notifications") if path != one_place]
    assert offenders(others, lambda path: any(clock in text(path) for clock in CLOCKS)) == []
