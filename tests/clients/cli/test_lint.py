"""``notify lint``, and the examples of the page about its rules."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from notifyproject_client.cli import command, kinds, lint
from notifyproject_client.cli.rules import type_rules as copied

from domain import design_rules, type_rules
from notifications.catalog.shipped_types import FOLDER
from tests.support.tables import each_case

PAGE = Path(settings.BASE_DIR, lint.PAGE)
SLUG = "parcel_lost"
BESIDE = tuple(f"{kind.folder}/" for kind in kinds.BESIDE)
_EXAMPLE = re.compile(r"```yaml\n# finds (.+)\n((?:.*\n)*?)```")
Example = tuple[str, str, str]
"""A rule, what it finds, and the files."""


def examples() -> list[Example]:
    found: list[Example] = []
    for section in PAGE.read_text().split("\n## ")[1:]:
        rule = section.partition("\n")[0]
        found += [(rule, *example) for example in _EXAMPLE.findall(section)]
    return found


def run(*words: str, types: Path) -> tuple[int, str]:
    out = io.StringIO()
    code = command.run([*words, "--types", str(types)], environment={}, out=out, err=io.StringIO())
    return code, out.getvalue()


def written(folder: Path, example: str) -> dict[str, Any] | None:
    """Write the files of an example. Return the published definition, if it has one."""
    texts = yaml.safe_load(example)
    times, published = texts.pop("repeat", 1), texts.pop("published", None)
    definition = {
        "name": "Parcel lost",
        "category": "transactional",
        "channels": ["email"],
        "example_data": {"parcel": "77"},
        **texts.pop("type.yaml", {}),
    }
    for name, text in {"type.yaml": definition, **texts}.items():
        path = folder.parent / name if name.startswith(BESIDE) else folder / SLUG / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text * times if isinstance(text, str) else json.dumps(text))
    return None if published is None else {**definition, "schema": published}


def test_page_has_a_finding_and_none_for_each_rule() -> None:
    rules = [rule for rule, _, _ in examples()]
    assert list(dict.fromkeys(rules)) == [rule.value for rule in type_rules.Rule]
    assert rules[::2] == rules[1::2]
    is_none = [found == "nothing" for _, found, _ in examples()]
    assert is_none == [False, True] * (len(rules) // 2)


@pytest.mark.parametrize("example", examples(), ids=lambda each: f"{each[0]}:{each[1]}")
def test_example_of_the_page_finds_what_it_says(example: Example, tmp_path: Path) -> None:
    rule, expected, text = example
    types = tmp_path / "types"
    published = written(types, text)
    folder = tmp_path if expected.startswith(BESIDE) else types / SLUG
    places = [] if expected == "nothing" else [f"{folder / expected}: {rule}"]
    if published is None:
        code, out = run("lint", types=types)
        assert code == bool(places)
        assert [": ".join(line.split(": ")[:2]) for line in out.splitlines()] == places
        return
    item = kinds.read_items(types)[SLUG]
    found = type_rules.find(item.content.definition, item.content.parts, published=published)
    located = [(kinds.locate([item], f"/types/0{each.pointer}"), each) for each in found]
    assert places == [
        f"{types / name}:{each.line or lint.line_of(types / name, path)}: {each.code}"
        for (_, name, path), each in located
    ]


def test_shipped_types_have_no_findings() -> None:
    assert run("lint", types=FOLDER) == (0, "")


@pytest.mark.parametrize(
    "name",
    [
        "type_rules.py",
        "design_rules.py",
        "messages.py",
        "plurals.py",
        "colours.py",
        "schema_changes.py",
        "sms.py",
    ],
)
def test_command_has_the_services_rules(name: str) -> None:
    copy = Path(copied.__file__).with_name(name).read_text()
    assert copy == Path(type_rules.__file__).with_name(name).read_text(), "make .venv/client"


def test_findings_are_json_for_other_programs(tmp_path: Path) -> None:
    written(tmp_path, "body.txt: See http://example.com now")
    code, out = run("lint", "--json", types=tmp_path)
    assert (code, json.loads(out)) == (
        1,
        [
            {
                "type": SLUG,
                "what": "insecure_link",
                "text": "http://example.com isn't https: it can be read and changed on its way.",
                "place": f"{tmp_path / SLUG / 'body.txt'}:1",
            }
        ],
    )


@each_case(
    "name, text, found",
    [
        ("type.yaml", "name: A\nchannels:\n", "type.yaml:2: wrong_type: Expected a list."),
        ("type.yaml", "name: A\nexample_data: 5\n", "type.yaml:2: wrong_type: Expected an object."),
        ("schema.json", "true", "schema.json:1: wrong_type: Expected an object."),
        ("schema.json", "[]", "schema.json:1: wrong_type: Expected an object."),
        ("schema.json", '{"properties": 5}', "schema.json:1: invalid: 5 is not of type"),
        ("schema.json", '{"properties":\n{"a/b": 5}}', "schema.json:2: invalid: 5 is not of type"),
    ],
)
def test_wrong_shape_is_found_and_hides_no_findings_of_others(
    name: str, text: str, found: str, tmp_path: Path
) -> None:
    written(tmp_path, "body.txt: See http://example.com now")
    wrong = tmp_path / "a"
    wrong.mkdir(exist_ok=True)
    (wrong / "type.yaml").write_text("name: A\n")
    (wrong / "body.txt").write_text("{{ b }}")
    (wrong / name).write_text(text)
    code, out = run("lint", types=tmp_path)
    first, second = out.splitlines()
    assert (code, first.startswith(f"{wrong}/{found}")) == (1, True), first
    assert ": insecure_link: " in second
    (wrong / name).unlink()


@each_case("words, code", [(("lint", "nope"), 2), (("lint", "--server"), 2), (("lint", SLUG), 1)])
def test_server_and_names_are_checked(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    written(tmp_path, "body.txt: See http://example.com now")
    assert run(*words, types=tmp_path)[0] == code


@each_case(
    "text, within, line",
    [
        ('{\n"properties": {\n"a": {},\n"b": {\n"type": 1}}}', "properties/b/type", 5),
        ('{\n"properties": {\n"a": {}}}', "properties/zzz", 2),
        ("name: x\nchannels:\n- email\n", "channels/0", 2),
        ('{\n"properties": {\n"a": {},\n"from/to~": {}}}', "properties/from~1to~0", 4),
        ("", "channels", 1),
        ("x", "", 1),
    ],
)
def test_line_of_a_path(text: str, within: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert lint.line_of(path, within) == line
    assert lint.line_of(tmp_path / "missing", within) == 1


def test_rules_of_texts_apply_to_partials_and_layouts(tmp_path: Path) -> None:
    types = tmp_path / "types"
    written(
        types,
        """
        body.txt: "{% render 'foot' %}"
        partials/foot.txt: "See http://example.com"
        partials/foot.pt.html: "<p>\\n<img src='https://example.com/a.png'></p>"
        layouts/main.html: "<p>{{ content }</p>"
        type.yaml: {layout: main}
        """,
    )
    code, out = run("lint", types=types)
    assert (code, [": ".join(line.split(": ")[:2]) for line in out.splitlines()]) == (
        1,
        [
            f"{tmp_path}/partials/foot.pt.html:2: image_without_text",
            f"{tmp_path}/partials/foot.txt:1: insecure_link",
            f"{tmp_path}/layouts/main.html:1: syntax",
        ],
    )


def test_nothing_is_unused_where_not_all_is_linted(tmp_path: Path) -> None:
    types = tmp_path / "types"
    written(types, "partials/old.txt: Bye")
    assert run("lint", types=types)[0] == 1
    assert run("lint", "partials/old", types=types) == (0, "")
    (types / SLUG / "type.yaml").unlink()
    assert run("lint", types=types) == (0, "")


@each_case(
    "layout, found",
    [
        ("{{ content }}", True),
        ("{{ content }}{% if unsubscribe_url %}Stop{% endif %}", True),
        ("{{ content }}{% comment %}{{ unsubscribe_url }}{% endcomment %}", True),
        ("{{ content }}{% render 'plain' %}", True),
        ("{{ content }}{{unsubscribe_url}}", False),
        ("{{ content }}{%- render 'foot', url: unsubscribe_url -%}", False),
        ("{{ content }}{% render 'outer' %}", False),
        ("{{ content }}{% render 'of_others' %}", False),
        ("{{ content }}{{ unsubscribe_url }", False),  # Nobody can read it
    ],
)
def test_layout_shows_the_link_to_unsubscribe(layout: str, found: bool) -> None:
    partials = {
        "plain": {"default": {"html": "<p>Bye</p>"}},
        "outer": {"default": {"html": "{% render 'inner' %}"}},
        "inner": {"pt": {"html": "<a href='{{ unsubscribe_url }}'>Stop</a>"}},
    }
    codes = [each.code for each in design_rules.find_in_layout(layout, partials)]
    assert (type_rules.Rule.OPT_OUT_MISSING in codes) is found


@each_case("colours", ["red", [], {"light": "red"}, {"light": {"text": "red", "accent": 1}}])
def test_colours_of_another_form_are_left_to_the_service(colours: Any) -> None:
    assert [*design_rules.find_in_brand({"name": "Acme", "colours": colours})] == []


def test_contrast_is_not_rounded_up_to_what_is_enough() -> None:
    palette = {"accent": "#777777", "on_accent": "#000000"}
    (found,) = design_rules.find_in_brand({"colours": {"light": palette}})
    assert found.pointer == "/brand/colours/light/accent"
    assert "4.47:1" in found.detail


class TestUnknownTranslations:
    """Keys that neither the language of a text, in any region, nor the default one has."""

    @pytest.mark.parametrize(
        ("place", "text", "translations"),
        [
            ("body.txt:1", "{{ 'lost' | t }}", "translations/pt.yaml"),
            ("pt/body.txt:2", "Oh\n{{- 'lost' | t: n: 2 -}}", "translations/fr.yaml"),
            ("partials/sorry.pt.txt:1", "{{ 'lost' | t }}", "translations/fr.yaml"),
            ("layouts/main.html:1", "{{ content }}{{ 'lost' | t }}", "translations/pt.yaml"),
        ],
    )
    def test_are_found_by_line(
        self, place: str, text: str, translations: str, tmp_path: Path
    ) -> None:
        found, _ = self.found(tmp_path, place.partition(":")[0], text, translations)
        folder = tmp_path if place.startswith(BESIDE) else tmp_path / "types" / SLUG
        assert found == [f"{folder / place}: unknown_translation"]

    @pytest.mark.parametrize(
        ("name", "text", "translations"),
        [
            ("body.txt", "{{ 'lost' | t }}", "translations/default.yaml"),
            ("pt/body.txt", "{{ 'lost' | t }}", "translations/pt-BR.yaml"),
            ("body.txt", "{% raw %}{{ 'lost' | t }}{% endraw %}", "translations/pt.yaml"),
            ("body.txt", "{{ 'lost' | t }}", "brands/acme.yaml"),  # No file has translations.
        ],
    )
    def test_others_are_not(self, name: str, text: str, translations: str, tmp_path: Path) -> None:
        assert self.found(tmp_path, name, text, translations) == ([], [])

    def test_named_items_alone_say_nothing_of_others(self, tmp_path: Path) -> None:
        self.found(tmp_path, "body.txt", "{{ 'lost' | t }}", "translations/pt.yaml")
        assert run("lint", SLUG, types=tmp_path / "types") == (0, "")

    def found(
        self, folder: Path, name: str, text: str, translations: str
    ) -> tuple[list[str], list[str]]:
        """What lint finds in a text, and what else it finds."""
        language, _, _ = name.rpartition("/")
        own = {f"{language}/subject.txt": "S"} if language == "pt" else {}
        beside = {"partials/sorry.txt": "Sorry."} if name.startswith("partials") else {}
        files = {
            "subject.txt": "S",
            "body.txt": "{% render 'sorry' %}" if beside else "B",
            "type.yaml": {"layout": "main"} if name.startswith("layouts") else {},
            **own,
            **beside,
            name: text,
            translations: {"lost": "Lost"},
        }
        written(folder / "types", json.dumps(files))
        _, out = run("lint", types=folder / "types")
        lines = [": ".join(line.split(": ")[:2]) for line in out.splitlines()]
        unknown = [line for line in lines if line.endswith("unknown_translation")]
        return unknown, [line for line in lines if line not in unknown]
