"""The version comes from one place, and a command writes it to the others."""

import shutil
from pathlib import Path

import pytest

from notifyproject import __version__
from scripts.release import versions
from scripts.release.versions import Version
from tests.support.source import ROOT
from tests.support.tables import each_case


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in versions.PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_all_files_state_the_same_version() -> None:
    assert versions.stated(ROOT) == {name: {__version__} for name in versions.PLACES}


def test_version_is_written_to_all_files_and_changes_nothing_else(copy: Path) -> None:
    versions.write(copy, Version(12, 3, 45))
    assert versions.stated(copy) == {name: {"12.3.45"} for name in versions.PLACES}
    versions.write(copy, Version.parse(__version__))
    for name in versions.PLACES:
        assert (copy / name).read_bytes() == (ROOT / name).read_bytes(), name


@each_case("text", ["1.0", "v1.0.0", "1.0.0-rc1", "01.0.0", "1.0.0 ", "", "1.0.٣"])
def test_other_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version such as"):
        Version.parse(text)


def test_previous_version_is_the_highest_lower_one_with_a_tag() -> None:
    tags = ["v0.9.0", "v1.0.0", "v1.10.0", "v1.9.0", "v2.0.0", "v1.11.0-rc1", "x1.11.0", "latest"]
    for text, previous in (("1.11.0", "1.10.0"), ("1.10.0", "1.9.0"), ("0.9.1", "0.9.0")):
        assert str(versions.before(Version.parse(text), tags)) == previous
    assert versions.before(Version(0, 9, 0), tags) is None


def test_major_version_may_break_and_before_1_0_any() -> None:
    for text, previous, may in (
        ("2.0.0", "1.9.9", True),
        ("1.1.0", "1.0.0", False),
        ("1.0.1", "1.0.0", False),
        ("1.0.0", "0.9.0", True),
        ("0.2.0", "0.1.0", True),
    ):
        assert Version.parse(text).may_break(Version.parse(previous)) is may, text
