"""Templates that would end or occupy a process without limits."""

DATA = {
    "order": "12345",
    "n": 4_000_000,
    "text": "a" * 60_000,
    "needle": "a" * 20_000 + "b",
    "items": [{"name": "Tea", "price": 1}] * 50,
    "long": ["x" * 1_000] * 50,
    "deep": [[[[1] * 200] * 5] * 5] * 2,
    "object": {f"k{n}": [{"a": n, "b": "x" * 20}] * 2 for n in range(900)},
    "objects": [{f"k{n}": "x" * 20 for n in range(90)}] * 30,
}
EACH = "{% for i in (1..1000) %}"
END = "{% endfor %}x"

LIQUID = {
    "a long range": "{{ (1..4000000) | join: '' | size }}",
    "a long range by its data": "{{ (1..n) | join: '' | size }}",
    "a search in a range": "{% if (1..99999999999) contains 'x' %}a{% endif %}b",
    "a range turned round": "{% for i in (1..99999999) reversed %}{% break %}{% endfor %}x",
    "growing by ten": "{{ 'a' " + "| replace: 'a', 'aaaaaaaaaa' " * 30 + "| size }}",
    "growing by its data": "{{ text | replace: 'a', text | size }}",
    "doubling a list": "{% assign l = long %}" + "{% assign l = l | concat: l %}" * 30 + "x",
    "a text many times": "{{ long | join: text | size }}",
    "squaring a number": "{% assign n = 99999999 %}" + "{% assign n = n | times: n %}" * 40 + "x",
    "outputs never closed in a comment": "{% comment %}" + "{{" * 20_000 + "{% endcomment %}x",
    "outputs never closed": "{{" * 20_000,
    "tags never closed": "{%" * 20_000,
    "raw never closed": "{% raw %}" * 900,
    "comments never closed": "{% comment %}" * 900,
    "blanks in outputs": ("{{" + " " * 99 + "}}") * 600,
    "blanks in tags": ("{% if order %}x{% endif" + " " * 99 + "%}") * 400,
    "one output of blanks": "{{" + " " * 60_000 + "}}",
    "many outputs": "{{ order }}" * 5_000,
    "many lines": "{% liquid\n" + "assign x = order\n" * 3_000 + "%}x",
    "loops after loops": "{% for i in (1..1000) %}{{ i }}{% endfor %}" * 160,
    "much in a loop": EACH + "{% assign x = i %}" * 480 + END,
    "captures in a loop": EACH + "{% capture x %}{{ text }}{% endcapture %}" + END,
    "searches in a loop": EACH + "{% if text contains needle %}{% endif %}" + END,
    "comparisons in a loop": EACH + "{% if deep == deep %}{% endif %}" + END,
    "cases in a loop": EACH
    + "{% case deep %}{% when "
    + "deep, " * 150
    + "deep %}{% endcase %}"
    + END,
    "filters in a loop": EACH + "{% assign y = text | escape | url_encode | strip_html %}" + END,
    "objects as groups": EACH + "{% cycle object: 'a', 'b' %}" * 5 + END,
    "objects as values": EACH + "{% cycle object, 'b' %}" * 5 + END,
    "objects cut": EACH + "{% capture z %}{{ object | slice: 0 }}{% endcapture %}" + END,
    "objects sorted": EACH + "{% assign z = objects | sort_natural %}" + END,
    "objects as keys": EACH + "{% if object[object] %}{% endif %}" + END,
    "objects in lists": EACH + "{{ objects | join: ',' | size }}" + END,
    "objects compared": EACH + "{% case object %}{% when objects %}{% endcase %}" + END,
    "objects appended": EACH + "{{ 'a' | append: object | size }}" + END,
    "objects as keys of objects": EACH + "{% assign z = objects | map: object %}" + END,
    "texts compared": EACH + "{% if text < text %}{% endif %}" * 20 + END,
    "the end of a list": EACH + "{% for j in long offset: 49 %}{{ j }}{% endfor %}" * 20 + END,
    "nested blocks": "{% if order %}" * 200 + "x" + "{% endif %}" * 200,
    "nested paths": "{{ " + "order[" * 150 + "order" + "]" * 150 + " }}",
    "brackets": "{{ " + "('['" * 300 + " }}",
}
"""Refused bodies. Objects cost what their items cost, wherever they are written as text."""
HTML = {
    "nested elements": "<p>x</p>\n" + "<div>" * 13_000,
    "nested elements of a loop's source": "{% if order %}" + "<div>" * 300 + "{% endif %}",
    "elements never closed": "<b>" * 20_000,
    "tables in cells": "<div><table><tr><td></div>" * 2_000,
    "ends in comments": "<div><!-- </div> -->" * 2_000,
    "ends in half comments": "<div><!x </div>" * 2_000,
    "ends in values": '<div><a title="</div>">x</a>' * 2_000,
    "ends in style sheets": "<div><style></div></style>" * 2_000,
    "ends in drawings": "<svg>" + '<g><style><g x="</style></g>"></style>' * 900,
    "ends of other names": "<div\xa0></div>" * 2_000 + "<mar\u212a></mark>" * 2_000,
    "bold that goes on": "<p>" + "".join(f"<b a{n}>" for n in range(150)) + "</p>" + "<p>x" * 3_000,
    "bold in every paragraph": "".join(f"<p><b a{n}>x</p>" for n in range(1_500)),
    "many styles": "<style>"
    + "".join(f"b{{--v{n}:1}}" for n in range(2_000))
    + "</style>"
    + "<b>x</b>" * 3_000,
    "many tags": "<p></p>" * 3_000,
}
"""Refused HTML parts."""
HARMLESS = {
    "a loop of elements": "{% for i in (1..1000) %}<div>{% endfor %}x",
    "tags never closed": "x<a " * 16_000,
    "comments never closed": "x" + "<!--" * 16_000,
    "titles in titles": "<title>" * 9_000 + "x",
    "attributes": "<a " + "b=1 " * 15_000 + ">x</a>",
    "selectors": "<style>" + ":not(" * 900 + "a" + ")" * 900 + "{color:red}</style><p>x</p>",
    "elements as deep as may be": "<div>" * 199 + "x",
}
"""Accepted HTML parts that must be parsed in linear time."""
