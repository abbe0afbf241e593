"""Random templates: Liquid, HTML, and CSS; nested, repeated, and broken."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from notifications.content.engine import HTML_ENVIRONMENT

DATA: Mapping[str, Any] = {
    "order": "12345",
    "n": 4_000_000,
    "price": 9.5,
    "yes": True,
    "text": "ab <i>&amp;</i> " * 2_000,
    "items": [{"name": "Tea", "price": n % 7, "tags": ["a", "b"]} for n in range(60)],
    "long": ["x" * 1_000] * 40,
    "deep": [[[[1] * 50] * 5] * 5] * 2,
    "shop": {"city": "Porto", "streets": ["A", "B"]},
    "object": {f"k{n}": [{"a": n, "b": "x" * 20}] for n in range(200)},
}
HOSTILE_DATA: Sequence[Mapping[str, Any]] = (
    DATA,
    dict.fromkeys(DATA, ""),
    dict.fromkeys(DATA, "<&'\"" * 20000),
    {name: ["y" * 90] * 2_000 for name in DATA},
    dict.fromkeys(DATA, 10**300),
    {name: {f"k{n}": [{"a": n, "b": "x" * 20}] * 3 for n in range(1_200)} for name in DATA},
    {name: [{f"k{n}": "x" * 20 for n in range(90)} for _ in range(60)] for name in DATA},
    {name: [[[["z"] * 20] * 20] * 20] for name in DATA},
)
"""Data for accepted templates: the example's, and data of other shapes."""
PATHS = [*DATA, "items[0].name", "shop.city", "items.size", "shop['streets'][1]", "recipient.name"]
LONGEST = 66_000
"""Maximum characters of a source, above the limit of a part."""
COUNTS = st.one_of(st.integers(1, 5), st.sampled_from([30, 200, 450, 1_000, 5_000, 13_000]))
ELEMENTS = [
    "p",
    "div",
    "span",
    "a",
    "b",
    "i",
    "strong",
    "em",
    "font",
    "code",
    "pre",
    "center",
    "x-y",
    "table",
    "tr",
    "td",
    "th",
    "tbody",
    "ul",
    "li",
    "ol",
    "h1",
    "br",
    "img",
    "form",
    "button",
    "svg",
    "g",
    "math",
    "select",
    "option",
    "title",
    "textarea",
    "style",
    "script",
    "template",
]
BODIES = ["{color:red}", "{--x:1;margin:0}", "{", "{content:'<'}", "{a:url(file:///x)}"]
PAIRS = [
    ("{% if yes %}", "{% endif %}"),
    ("{% for i in items %}", "{% endfor %}"),
    ("<div>", "</div>"),
    ("<b>", ""),
    ("<table><tr><td>", ""),
    ("<p><b>", "</p>"),
]
SELECTORS = ["a", ".b", "#c", "*", "a b", "a>b", "a~b", ":not(a)", ":is(a,b)", ":nth-child(2n)"]


def _times(identifier: str, count: int) -> str:
    """Repeat a text, up to LONGEST."""
    return identifier * min(count, LONGEST // max(1, len(identifier)) + 1)


_numbers = st.sampled_from([0, 1, 9, 1_000, 4_000_000, 10**18, 10**40, -1])
_literals = st.one_of(
    _numbers.map(str),
    st.sampled_from(["'a'", "''", "','", "'<b>'", "'aaaaaaaaaa'", "true", "nil", "1.5", "'%c%Y'"]),
)
_ranges = st.builds(
    "({}..{})".format, _numbers, st.one_of(_numbers.map(str), st.sampled_from(["n", "items.size"]))
)
_values = st.one_of(st.sampled_from(PATHS), _literals, _ranges)
_filters = st.builds(
    lambda name, arguments: f" | {name}" + (f": {', '.join(arguments)}" if arguments else ""),
    st.sampled_from(sorted(HTML_ENVIRONMENT.filters)),
    st.lists(_values, max_size=2),
)
_expressions = st.one_of(
    _values,
    st.builds(lambda value, filters: value + "".join(filters), _values, st.lists(_filters)),
    st.builds(lambda value, item, count: value + _times(item, count), _values, _filters, COUNTS),
)
_conditions = st.lists(
    st.builds(
        "{} {} {}".format, _values, st.sampled_from(["==", "!=", "<", ">=", "contains"]), _values
    ),
    min_size=1,
    max_size=4,
).map(" and ".join)
_texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["x", "\n", " ", "{", "{{", "{%", "}}", "%}", "&amp;", "<", ">", "'", '"']),
)
_attributes = st.lists(
    st.sampled_from([" class='b'", ' style="color:red"', " href={{n}}", " a=b", ' title="', "="]),
    max_size=3,
).map("".join)
_openings = st.builds("<{}{}>".format, st.sampled_from(ELEMENTS), _attributes)
_closings = st.builds("</{}>".format, st.sampled_from(ELEMENTS))
_rules = st.builds(
    lambda selector, count, body: selector * min(count, 900) + body,
    st.sampled_from(SELECTORS),
    COUNTS,
    st.sampled_from(BODIES),
)
_sheets = st.builds(
    lambda rules, count: f"<style>{''.join(rules) * min(count, 400)}</style>",
    st.lists(_rules, max_size=3),
    COUNTS,
)
_markup = st.one_of(
    _openings,
    _closings,
    st.sampled_from(["<!--", "-->", "<!x>", "<![CDATA[", "<link rel=stylesheet href=x.css>"]),
    _sheets,
)
_outputs = st.builds("{{{{ {} }}}}".format, _expressions)
_statements = st.one_of(
    st.builds(
        "{{% assign {} = {} %}}".format, st.sampled_from(["a", "order", "long"]), _expressions
    ),
    st.builds("{{% cycle {}, {} %}}".format, _values, _values),
    st.builds("{{% cycle {}: {}, {} %}}".format, _values, _values, _values),
    st.builds("{{{{ {}[{}] | default: 'a' }}}}".format, st.sampled_from([*DATA]), _values),
    st.builds("{{% liquid\n{} %}}".format, st.just("assign a = order | append: order\n")),
    st.sampled_from(["{% break %}", "{% increment a %}", "{% else %}", "{% endif %}", "{% raw %}"]),
)


_openings_of_liquid = st.sampled_from(["{{", "{%", "{% raw %}", "{% comment %}", "{{ a }}", "{% x"])


def _blocks(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{{% if {} %}}{}{{% endif %}}".format, _conditions, inside),
        st.builds("{{% for i in {} %}}{}{{% endfor %}}".format, _values, inside),
        st.builds("{{% for i in {} reversed %}}{}{{% endfor %}}".format, _values, inside),
        st.builds("{{% for i in (1..900) %}}{}{{% endfor %}}".format, inside),
        st.builds("{{% tablerow i in {} %}}{}{{% endtablerow %}}".format, _values, inside),
        st.builds("{{% capture a %}}{}{{% endcapture %}}".format, inside),
        st.builds(
            "{{% case {} %}}{{% when {} %}}{}{{% endcase %}}".format, _values, _values, inside
        ),
        st.builds("{{% ifchanged %}}{}{{% endifchanged %}}".format, inside),
        *(
            st.builds(f"{{{{% {name} %}}}}{{}}{{{{% end{name} %}}}}".format, text)
            for name in ("comment", "raw", "doc")
            for text in (inside, st.builds(_times, _openings_of_liquid, COUNTS))
        ),
        st.builds("<div>{}</div>".format, inside),
        st.builds("<table><tr><td>{}</td></tr></table>".format, inside),
        st.builds(_times, inside, COUNTS),
        st.builds(
            lambda pair, text, count: _times(pair[0], count) + text + _times(pair[1], count),
            st.sampled_from(PAIRS),
            inside,
            COUNTS,
        ),
        st.lists(inside, min_size=2, max_size=5).map("".join),
    )


_sources = st.recursive(st.one_of(_texts, _outputs, _statements, _markup), _blocks, max_leaves=12)
"""Truncated, because a part far above the limit is refused at once."""
cases = st.tuples(
    st.sampled_from(["body", "email_html", "email_html", "subject", "push", "whatsapp"]),
    _sources.map(lambda source: f"x{source}"[:LONGEST]),
)
