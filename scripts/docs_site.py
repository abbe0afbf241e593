"""Collects the pages of the documentation's site: ``make docs``.

The generator knows one folder. So the pages are copied into one, together with those that the
repository has elsewhere, and links between them follow.
"""

import re
import shutil
from collections.abc import Mapping
from os.path import normpath, relpath
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / ".data" / "docs-pages"
DIAGRAMS = ROOT / ".venv" / "mermaid.js"
ELSEWHERE: Mapping[str, str] = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "clients/conformance/README.md": "project/client_conformance.md",
    "clients/python/README.md": "project/python_client.md",
    "clients/typescript/README.md": "project/typescript_client.md",
    "clients/typescript/testing/README.md": "project/typescript_testing.md",
    "clients/web/README.md": "project/web_packages.md",
    "examples/README.md": "project/examples.md",
}
"""Pages outside ``docs``, and their places in the site."""
_CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_TABS: Mapping[str, str] = {"sh": "curl", "python": "Python", "ts": "TypeScript"}
"""Languages of code that a reader chooses among, where one block follows the other."""
_BLOCK = rf"```(?:{'|'.join(_TABS)})\n(?:(?!```).*\n)*```\n"
_CHOICE = re.compile(rf"^{_BLOCK}(?:\n+{_BLOCK})+", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")


def copy_pages(folder: Path) -> None:
    """Fill an empty folder with all pages and images of the site."""
    shutil.copytree(ROOT / "docs", folder)
    places = {path: place for path, place in _places().items() if path.endswith(".md")}
    for path, place in places.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / path).read_text(encoding="utf-8")
        text = with_tabs(with_links(text, page=path, places=_places()))
        target.write_text(text, encoding="utf-8")


def with_links(text: str, *, page: str, places: Mapping[str, str]) -> str:
    """Return the text of a page whose links lead from its place to those of others.

    A link to a file without a place stays, and the generator reports it.
    """
    here = Path(places[page]).parent

    def moved(link: re.Match[str]) -> str:
        target = normpath(Path(page).parent / link[1])
        return relpath(places[target], here) if target in places else link[1]

    pieces = _CODE.split(text)
    # Every second piece is code.
    return "".join(
        piece if index % 2 else _LINK.sub(moved, piece) for index, piece in enumerate(pieces)
    )


def with_tabs(text: str) -> str:
    """Return the text of a page with a tab for each of the same in several languages."""
    return _CHOICE.sub(lambda found: _tabs(found[0]), text)


def _tabs(text: str) -> str:
    blocks = re.findall(_BLOCK, text)
    languages = [block.partition("\n")[0].strip("`") for block in blocks]
    if len(set(languages)) < len(languages):  # One after the other, rather than one or the other
        return text
    return "".join(
        f'=== "{_TABS[language]}"\n\n{indent(block, "    ")}\n'
        for language, block in zip(languages, blocks, strict=True)
    )


def _places() -> Mapping[str, str]:
    """Return the place in the site of each file of the repository that has one."""
    files = (path.relative_to(ROOT) for path in ROOT.glob("docs/**/*") if path.is_file())
    return {**{str(path): str(path.relative_to("docs")) for path in files}, **ELSEWHERE}


def main() -> None:
    """Copy the pages to where the generator's configuration, ``zensical.toml``, has them."""
    shutil.rmtree(PAGES, ignore_errors=True)
    copy_pages(PAGES)
    scripts = PAGES / "scripts"
    scripts.mkdir()
    shutil.copyfile(DIAGRAMS, scripts / DIAGRAMS.name)


if __name__ == "__main__":
    main()
