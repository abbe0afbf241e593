"""Every page renders, its links lead somewhere, and its lists are those of the code."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from access.models import Scope
from callbacks.events import EventType
from notifications.catalog.shipped_types import shipped_types
from notifications.models import Notification
from tests.support.openapi import api_document
from tests.support.source import ROOT
from tests.support.tables import each_case

NOT_LINKED = {"clients/web/README.md"}
"""Pages that no other page needs to link."""
EXAMPLES = {
    "domain/channels/pigeon.py",
    "providers/loft/__init__.py",
    "providers/loft/provider.py",
    "templates/console/types/previews/note.html",
    "templates/notifications/order_shipped/pigeon.txt",
}
"""Files that a page asks its reader to create."""
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("clients/*/README.md")]
)
DELIVERY_FIELDS = frozenset(
    f"delivery.{field}"
    for field in (
        "channel",
        "status",
        "last_attempt_at",
        "next_attempt_at",
        "provider_message_id",
        "digest_id",
    )
)
"""Fields of MongoDB's documents, which look like events."""
_PIPE = re.compile(r"(?<!\\)\|")
_PARAMETER = re.compile(r"\{\w+\}")


@cache
def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def tokens(page: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text(page))


def inline(page: str) -> Iterator[Token]:
    """Yield the texts, links, and images of a page."""
    for token in tokens(page):
        yield from token.children or ()


@cache
def headings(page: str) -> Counter[str]:
    """Return the anchors of a page's headings, and how many headings have the same text."""
    found: Counter[str] = Counter()
    for opened, title in zip(tokens(page), tokens(page)[1:], strict=False):
        if opened.type == "heading_open":
            words = "".join(
                child.content
                for child in title.children or ()
                if child.type in ("text", "code_inline")
            )
            found[re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")] += 1
    return found


def links(page: str) -> Iterator[tuple[str, str]]:
    """Yield each local link of a page: the file, relative to the root, and the anchor."""
    for token in inline(page):
        target = str(token.attrs.get("href") or token.attrs.get("src") or "")
        if target and not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            file = (ROOT / page).parent / path if path else ROOT / page
            yield str(Path(file).resolve().relative_to(ROOT)), anchor


@each_case("page", PAGES)
def test_links_lead_to_a_file_and_to_one_heading(page: str) -> None:
    wrong = [
        f"{file}#{anchor}" if anchor else file
        for file, anchor in links(page)
        if not (ROOT / file).exists()
        # Of two headings with one text, a link leads to the first, whichever was meant.
        or (anchor and file.endswith(".md") and headings(file)[anchor] != 1)
    ]
    assert wrong == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached, border = set[str](), {"README.md"}
    while border:
        reached |= border
        border = {file for page in border for file, _ in links(page)} & set(PAGES) - reached
    assert set(PAGES) - reached == NOT_LINKED


@each_case("page", PAGES)
def test_named_files_exist(page: str) -> None:
    named = set(re.findall(r"`([a-z][\w/.-]*/[\w.-]+\.[a-z]+)`", text(page)))
    ours = {file for file in named if (ROOT / file.partition("/")[0]).is_dir()}
    assert {file for file in ours - EXAMPLES if not (ROOT / file).exists()} == set()


def test_changelog_says_nothing_twice() -> None:
    """A merge that keeps the lines of both sides can bring back those that one side moved."""
    entries = re.split(r"\n(?=- |#)", text("CHANGELOG.md"))
    sentences = Counter(
        sentence
        for entry in entries
        for sentence in re.split(r"(?<=[.;]) ", " ".join(entry.removeprefix("- ").split()))
    )
    assert [sentence for sentence, times in sentences.items() if times > 1] == []


def rows_of(page: str) -> Iterator[tuple[int, str]]:
    """Yield each row of a table, with its line, as the source has it."""
    lines = text(page).splitlines()
    fenced = {
        number
        for token in tokens(page)
        if token.type in ("fence", "code_block") and token.map
        for number in range(*token.map)
    }
    for number, line in enumerate(lines):
        if line.lstrip(" >").startswith("|") and number not in fenced:
            yield number, line.strip(" >")


@each_case("page", PAGES)
def test_tables_render_with_as_many_cells_in_each_row_as_in_the_header(page: str) -> None:
    """A line before a table, or an indentation that doesn't fit, makes a paragraph of pipes."""
    tables = [token.map for token in tokens(page) if token.type == "table_open" and token.map]
    lines = text(page).splitlines()
    broken = []
    for number, row in rows_of(page):
        table = next((table for table in tables if number in range(*table)), None)
        if table is None or len(_PIPE.findall(row)) != len(_PIPE.findall(lines[table[0]])):
            broken.append(f"{page}:{number + 1}: {row}")
    assert broken == []
    shown = "".join(token.content for token in inline(page) if token.type == "text")
    assert "|---" not in shown


def table(page: str, header: str) -> Mapping[str, str]:
    """Return the rows below a header: the second cell by the first."""
    found = {}
    lines = text(page).partition(f"\n{header}\n")[2].splitlines()[1:]
    for line in lines:
        if not line.startswith("|"):
            break
        first, second, *_ = (cell.strip() for cell in _PIPE.split(line)[1:])
        found[first] = second
    return found


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_api_page_lists_every_scope() -> None:
    listed = [
        code
        for cell in table("docs/reference/api.md", "| scope | allows |")
        for code in codes(cell)
    ]
    assert sorted(listed) == sorted(scope.value for scope in Scope)


def test_callbacks_page_lists_every_event() -> None:
    listed = [
        code
        for cell in table("docs/guides/callbacks.md", "| event | when |")
        for code in codes(cell)
    ]
    assert sorted(listed) == sorted(kind.value for kind in EventType)


def test_api_page_lists_every_path() -> None:
    listed = []
    for cell in table("docs/reference/api.md", "| path | guide |"):
        base, *others = codes(cell)
        listed += [base, *(f"{base}{other}" for other in others)]
    known = [path.removeprefix("/api/v1") for path in paths()]
    assert sorted(_PARAMETER.sub("{}", path) for path in listed) == sorted(known)


@cache
def paths() -> tuple[str, ...]:
    """Return the paths of the API, with braces for parameters."""
    return tuple(_PARAMETER.sub("{}", path) for path in api_document()["paths"])


def is_path(text: str) -> bool:
    """Return whether a path, in which a parameter may have a value, is one of the API."""
    asked = text.rstrip("/.").split("/")
    for path in paths():
        known = path.split("/")
        same = (b in (a, "{}") for a, b in zip(asked, known, strict=False))
        if len(asked) == len(known) and all(same):
            return True
    return False


@each_case("page", PAGES)
def test_page_names_no_scope_event_or_path_that_is_not_there(page: str) -> None:
    """A renamed or mistyped one is found wherever it stands, not in the tables alone."""
    if page == "CHANGELOG.md":
        return
    scopes = {scope.value for scope in Scope}
    resources = "|".join(sorted({scope.partition(":")[0] for scope in scopes if ":" in scope}))
    named = set(re.findall(rf"\b(?:{resources}):[a-z_]+\b", text(page)))
    assert named - scopes == set()
    events = {kind.value for kind in EventType}
    found = set(re.findall(r"`((?:delivery|notification)\.[a-z_]+)`", text(page)))
    assert found - events - DELIVERY_FIELDS == set()
    first = {path.split("/")[3] for path in paths()}
    asked = set(re.findall(r"(/api/v1/[\w/{}$-]+)", text(page)))
    asked |= {
        f"/api/v1{path}"
        for path in re.findall(r"`(?:GET|POST|PUT|PATCH|DELETE) (/[\w/{}$-]+)", text(page))
        if path.split("/")[1] in first
    }
    assert {path for path in asked if not is_path(path)} == set()


def types_table() -> str:
    """Return the rows of the shipped types, as docs/reference/types.md has them."""
    rows = []
    for default in shipped_types():
        variables = ", ".join(
            f"`{name}` (secret)" if name in default.definition.sensitive_variables else f"`{name}`"
            for name in default.definition.example_data
        )
        templates = dict.fromkeys(
            f"`{each['name']}`" for each in default.fields["approved_templates"]
        )
        cells = (
            f"`{default.slug}`",
            default.definition.description,
            variables or "\N{EN DASH}",
            ", ".join(default.definition.channels),
            f"{default.definition.category}, {default.definition.priority}",
            ", ".join(templates) or "\N{EN DASH}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def test_types_page_lists_every_shipped_type_with_its_variables() -> None:
    assert types_table() in text("docs/reference/types.md"), f"its rows are:\n{types_table()}"


def test_scale_page_counts_the_indexes_of_notifications() -> None:
    count = len(Notification._meta.indexes) + 1  # And that on the ID
    stated = re.findall(r"(\d+) indexes on `notifications`", text("docs/guides/scale.md"))
    stated += re.findall(r"their (\d+) indexes, and", text("docs/guides/scale.md"))
    assert stated == [str(count)] * 2
