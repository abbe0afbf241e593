"""The pages of the documentation's site, which ``make docs`` builds."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts import docs_site
from tests.support.source import ROOT

PLACES = {
    "docs/guides/send.md": "guides/send.md",
    "docs/README.md": "README.md",
    "CHANGELOG.md": "project/changelog.md",
}


def places_named(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from places_named(item)


def test_links_follow_pages_that_are_elsewhere() -> None:
    for page, before, after in (
        ("docs/guides/send.md", "[a](../../CHANGELOG.md)", "[a](../project/changelog.md)"),
        ("docs/guides/send.md", "[a](../README.md#x)", "[a](../README.md#x)"),
        ("docs/guides/send.md", "[a](https://example.com/x.md)", "[a](https://example.com/x.md)"),
        ("docs/guides/send.md", "[a](#here) (b.md)", "[a](#here) (b.md)"),
        ("CHANGELOG.md", "[a](docs/guides/send.md)", "[a](../guides/send.md)"),
        ("CHANGELOG.md", "`[a](docs/guides/send.md)`", "`[a](docs/guides/send.md)`"),
        ("CHANGELOG.md", "```\n[a](docs/README.md)\n```\n", "```\n[a](docs/README.md)\n```\n"),
        ("CHANGELOG.md", "[a](Makefile)", "[a](Makefile)"),
    ):
        assert docs_site.with_links(before, page=page, places=PLACES) == after, before


def test_code_in_several_languages_gets_tabs() -> None:
    curl, python = "```sh\ncurl x\n```\n", "```python\nnotify()\n\nmore()\n```\n"
    assert docs_site.with_tabs(f"One:\n\n{curl}\n{python}\nEnd.\n") == (
        'One:\n\n=== "curl"\n\n    ```sh\n    curl x\n    ```\n\n'
        '=== "Python"\n\n    ```python\n    notify()\n\n    more()\n    ```\n\n\nEnd.\n'
    )
    for other in (
        f"{curl}\n{curl}",
        f"{curl}\nThen:\n\n{python}",
        curl,
        f"{curl}\n```json\n{{}}\n```\n",
    ):
        assert docs_site.with_tabs(other) == other


def test_menu_has_every_guide_and_reference_page(tmp_path: Path) -> None:
    docs_site.copy_pages(tmp_path / "pages")
    pages = {str(path.relative_to(tmp_path / "pages")) for path in tmp_path.glob("pages/**/*.md")}
    project = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    named = list(places_named(project["nav"]))
    assert len(named) == len(set(named))
    assert set(named) <= pages
    reached_by_lists = ("decisions/", "problems/", "failures/", "results/", "upgrading/")
    left = {page for page in pages - set(named) if not page.startswith(reached_by_lists)}
    assert left == set()
