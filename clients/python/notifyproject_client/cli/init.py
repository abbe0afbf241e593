"""``notify init``: the files of a type, or of an item of the design, to begin with."""

from collections.abc import Callable, Mapping
from pathlib import Path

from . import kinds
from .files import OWN_LANGUAGE, Content, FileError
from .kinds import TYPE

FIRST_SLUG = "welcome"
_LAYOUT = """\
<html>
  <head>
    <style>
      body { background-color: {{ brand.colours.light.background }}; font-family: sans-serif; }
      .card { background-color: {{ brand.colours.light.surface }}; }
      .card, .card p { color: {{ brand.colours.light.text }}; }
      .card a { color: {{ brand.colours.light.accent }}; }
      .footer, .footer a { color: {{ brand.colours.light.muted }}; }
    </style>
  </head>
  <body>
    <table width="100%" role="presentation">
      <tr><td class="card">{{ content }}</td></tr>
      <tr>
        <td class="footer">
          {{ brand.name }}
          {% if unsubscribe_url %}
            <a href="{{ unsubscribe_url }}">{{ words.unsubscribe }}</a>
          {% endif %}
        </td>
      </tr>
    </table>
  </body>
</html>"""


def write_first(types: Path, key: str) -> list[Path]:
    """Write the files of a first item that can be pushed as it is. Return them.

    Raises FileError.
    """
    kind, name = kinds.kind_and_name(key)
    folder = kinds.folder_of(kind, types)
    if name in kind.names(folder):
        raise FileError(folder / name, f"There already is such a {kind.name}.")
    return kind.write(folder, name, _FIRST[kind.name](name))


def _first_type(slug: str) -> Content:
    definition = {
        "name": _called(slug),
        "description": "Somebody has signed up.",
        "category": "transactional",
        "channels": ["email"],
        "example_data": {"first_name": "Ada"},
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "first_name": {"type": "string", "description": "What they are called."}
            },
            "required": ["first_name"],
        },
    }
    texts = {
        "subject": "Welcome, {{ first_name }}",
        "body": "Hello {{ first_name }},\n\nthank you for signing up.",
    }
    return Content(definition, {OWN_LANGUAGE: texts})


def _first_partial(_name: str) -> Content:
    texts = {"html": '<p><a href="{{ url }}">{{ label }}</a></p>', "text": "{{ label }}: {{ url }}"}
    return Content({}, {OWN_LANGUAGE: texts})


def _first_layout(_name: str) -> Content:
    return Content({}, {OWN_LANGUAGE: {"html": _LAYOUT}})


def _first_brand(name: str) -> Content:
    colours = {"light": {"accent": "#b91c1c"}, "dark": {"accent": "#fca5a5"}}
    return Content({"name": _called(name), "colours": colours, "footer": "1 High Street, Lisbon"})


def _first_translations(_language: str) -> Content:
    return Content({"parcels": {"lost": "{count, plural, one {# parcel} other {# parcels}} lost"}})


def _first_limit(_name: str) -> Content:
    return Content({"categories": ["marketing"], "max": 3, "period_seconds": 7 * 86_400})


def _called(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").capitalize()


_FIRST: Mapping[str, Callable[[str], Content]] = {
    TYPE.name: _first_type,
    "partial": _first_partial,
    "layout": _first_layout,
    "brand": _first_brand,
    "translation": _first_translations,
    "limit": _first_limit,
}
