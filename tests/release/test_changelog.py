"""The section of a release in the changelog."""

from datetime import date

import pytest

from scripts.release import changelog
from scripts.release.versions import Version
from tests.support.tables import each_case

TODAY = date(2027, 1, 31)
NEXT = Version(1, 1, 0)
BEGUN = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A bell.\n"
RELEASED = (
    "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2027-01-31\n\n### Added\n\n- A bell.\n"
    "\n## [1.0.0] - 2026-11-29\n\n- All.\n"
)


def problems(text: str) -> list[str]:
    return list(changelog.problems(text, version=NEXT, today=TODAY))


def test_unreleased_changes_become_those_of_the_version() -> None:
    text = changelog.with_release(BEGUN, version=NEXT, day=TODAY)
    assert text == RELEASED.partition("\n## [1.0.0]")[0]
    assert problems(text) == []


@each_case("text, words", [(RELEASED, "nothing under Unreleased"), ("# Changelog\n", "nothing")])
def test_version_needs_changes(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        changelog.with_release(text, version=Version(1, 2, 0), day=TODAY)


def test_version_is_begun_once() -> None:
    text = changelog.with_release(BEGUN, version=NEXT, day=TODAY)
    text = text.replace("[Unreleased]\n", "[Unreleased]\n\n- A horn.\n")
    with pytest.raises(ValueError, match=r"has 1\.1\.0 already"):
        changelog.with_release(text, version=NEXT, day=TODAY)


def test_released_changelog_has_no_problem() -> None:
    assert problems(RELEASED) == []
    assert problems(RELEASED.replace("2027-01-31", "2027-01-30")) == []


@each_case(
    "old, new, problem",
    [
        ("[Unreleased]\n", "[Unreleased]\n\n- A horn.\n", "has changes under Unreleased"),
        ("## [Unreleased]\n\n", "", "doesn't begin with Unreleased"),
        ("[1.1.0]", "[1.1.1]", "has no section"),
        ("2027-01-31", "soon", "has no section"),
        ("### Added\n\n- A bell.\n", "", "says nothing of 1.1.0"),
        ("2027-01-31", "2027-02-01", "has yet to come"),
        ("2027-01-31", "2026-11-28", "is older than the one below"),
        ("2027-01-31", "2027-01-32", "has a wrong date"),
    ],
)
def test_what_a_human_forgot_is_named(old: str, new: str, problem: str) -> None:
    (found,) = problems(RELEASED.replace(old, new, 1))
    assert problem in found
