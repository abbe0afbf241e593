"""The template engine: filters and the render cache."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from liquid.exceptions import FilterArgumentError

from notifications.content import engine
from notifications.content.engine import RenderCache, Template, TemplateError
from notifications.content.filters import in_zone, pluralize
from notifications.content.limits import Budget
from tests.support.tables import each_case


@pytest.mark.parametrize("value", [1, 1.0, "1", "1.0", " 1 "])
def test_singular_is_used_for_one(value: Any) -> None:
    assert pluralize(value, "hour", "hours") == "hour"


@each_case("value", [0, 2, -1, 1.5, "0", "2", "some", "", None, True, [], {}, 10**400])
def test_plural_is_used_for_other_values(value: Any) -> None:
    assert pluralize(value, "hour", "hours") == "hours"


@each_case(
    "value, zone, shown",
    [
        ("2026-07-01T14:35:00Z", "UTC", "2026-07-01 14:35"),
        ("2026-07-01T14:35:00Z", "Europe/Lisbon", "2026-07-01 15:35"),
        ("2026-12-01T14:35:00Z", "Europe/Lisbon", "2026-12-01 14:35"),
        ("2026-07-01T14:35:00+05:30", "UTC", "2026-07-01 09:05"),
        ("2026-07-01T14:35:00", "UTC", "2026-07-01 14:35"),
        ("2026-07-01", "Asia/Tokyo", "2026-07-01 09:00"),
        (1_782_916_500, "UTC", "2026-07-01 14:35"),
    ],
)
def test_time_is_converted_to_its_zone(value: Any, zone: str, shown: str) -> None:
    assert str(in_zone(value, zone)) == f"{shown}:00"


def test_same_instant_differs_by_zone() -> None:
    template = Template("{{ t | in_zone: zone | date: '%H:%M' }}")
    for zone, shown in (("UTC", "14:35"), ("Asia/Tokyo", "23:35"), ("UTC", "14:35")):
        assert template.render({"t": "2026-07-01T14:35:00Z", "zone": zone}) == shown


@each_case(
    "value, zone",
    [
        *((value, "UTC") for value in ("soon", "", None, True, [], {}, 10**30, "9999")),
        *(
            ("2026-07-01T14:35:00Z", zone)
            for zone in ("Mars/Olympus", "../etc/passwd", "", "a\x00")
        ),
        ("0001-01-01T00:00:00+14:00", "UTC"),
    ],
)
def test_invalid_time_or_zone_raises_an_error(value: Any, zone: str) -> None:
    with pytest.raises(FilterArgumentError):
        in_zone(value, zone)


GREETING = "Hello {{ name | upcase }}"


class Counted(Template):
    """A template that counts how often it is rendered."""

    __slots__ = ("count",)

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.count = 0

    def render(self, variables: Mapping[str, Any], *, budget: Budget | None = None) -> str:
        self.count += 1
        return super().render(variables, budget=budget)


def rendered(source: str, *variables: Mapping[str, Any]) -> tuple[list[str], int]:
    """Render with each set of variables; return the texts and the number of renderings."""
    template, cache = Counted(source), RenderCache()
    texts = [cache.render(template, first_) for first_ in variables]
    assert texts == [Template(source).render(first_) for first_ in variables]
    return texts, template.count


def test_same_values_render_once() -> None:
    """The cache ignores variables that the template doesn't use."""
    texts = ["Hello A", "Hello A", "Hello B"]
    assert rendered(GREETING, {"name": "a"}, {"name": "a", "id": 2}, {"name": "b"}) == (texts, 2)


@each_case(
    "source, first_, other",
    [
        ("{{ x | append: '!' }}", {"x": 1}, {"x": "1"}),
        ("{{ x | append: '!' }}", {"x": 1}, {"x": True}),
        ("{{ x | append: '!' }}", {"x": 1}, {"x": 1.0}),
        ("{% if x == 1 %}a{% endif %}", {"x": 1}, {"x": 2}),
        ("{% if x == nil %}a{% endif %}", {"x": None}, {"x": ""}),
        ("{% if x.y == 1 %}a{% endif %}", {"x": {"y": 1}}, {"x": {}}),
        ("{% if x.y == 1 %}a{% endif %}", {"x": {"y": 1}}, {}),
        ("{{ x.size }}", {"x": [1]}, {"x": [1, 2]}),
        ("{{ x.size }}", {"x": {"a": 1}}, {"x": {"a": 1, "b": 2}}),
        ("{{ x[0] }}", {"x": ["a"]}, {"x": ["b"]}),
        ("{{ x[y] }}", {"x": {"a": 1, "b": 2}, "y": "a"}, {"x": {"a": 1, "b": 2}, "y": "b"}),
        ("{% for i in x %}{{ i.n }}{% endfor %}", {"x": [{"n": 1}]}, {"x": [{"n": 2}]}),
        ("{{ x | default: y }}", {"y": "a"}, {"y": "b"}),
        ("{{ t | in_zone: z | date: '%H' }}", {"t": 0, "z": "UTC"}, {"t": 0, "z": "Asia/Tokyo"}),
        ("{% assign v = x | upcase %}{{ v }}", {"x": "a"}, {"x": "b"}),
    ],
)
def test_used_variables_matter(source: str, first_: dict[str, Any], other: dict[str, Any]) -> None:
    assert rendered(source, first_, other, first_)[1] == 2


def test_template_with_the_clock_is_not_cached() -> None:
    template, cache = Counted("{{ now | date: '%Y' }}"), RenderCache()
    assert cache.render(template, {}) == cache.render(template, {})
    assert template.count == 2


def test_errors_are_not_cached() -> None:
    template, cache = Counted(GREETING), RenderCache()
    for _ in range(2):
        with pytest.raises(TemplateError) as problem:
            cache.render(template, {})
        assert problem.value.variable == "name"


def test_each_template_has_its_own_cache() -> None:
    cache, variables = RenderCache(), {"name": "a"}
    first, second = Counted(GREETING), Counted("Bye {{ name | upcase }}")
    assert [cache.render(first_, variables) for first_ in (first, second)] == ["Hello A", "Bye A"]


def test_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_CACHED_TEXTS", 2)
    variables = [{"name": f"n{n}"} for n in range(4)]
    assert rendered(GREETING, *variables, *variables)[1] == 6


VALUES = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "1", 1.0])

VARIABLES = st.dictionaries(
    st.sampled_from(["a", "b"]),
    VALUES | st.dictionaries(st.sampled_from(["b", "c"]), VALUES) | st.lists(VALUES, max_size=2),
)


@settings(deadline=None)
@given(
    st.sampled_from(
        [
            "{{ a | default: 'x' }}{{ b | default: 'y' }}",
            "{% if a.b %}{{ a.b | default: 1 }}{% endif %}{% if b %}b{% endif %}",
            "{% for one in a %}{{ one | default: '-' }}{% endfor %}",
            "{% if a.size == 1 %}one{% endif %}{{ a.c | default: '?' }}",
        ]
    ),
    st.lists(VARIABLES, max_size=5),
)
def test_cached_text_equals_the_rendered_text(source: str, variables: list[dict[str, Any]]) -> None:
    template, cache = Template(source), RenderCache()
    for first_ in variables:
        assert result_of(partial(cache.render, template, first_)) == result_of(
            partial(template.render, first_)
        )


def result_of(render: Callable[[], str]) -> tuple[str, str | None]:
    try:
        return render(), None
    except TemplateError as problem:
        return problem.code, problem.variable
