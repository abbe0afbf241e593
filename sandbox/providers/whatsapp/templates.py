"""The account's message templates, and the messages made from them."""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ... import credentials

FILE = "whatsapp_templates.json"
APPROVED = Path(__file__).with_name("approved_templates.json")
"""The templates of the service's built-in types, which every account has."""
MEDIA = ("IMAGE", "VIDEO", "DOCUMENT")
_VARIABLE = re.compile(r"\{\{\s*([a-z0-9_]+)\s*\}\}", re.ASCII)


class UnreadableTemplatesError(ValueError):
    """A file of templates is invalid. The message names it."""


class Component(msgspec.Struct, omit_defaults=True):
    """A component of a template: header, body, footer, or buttons."""

    type: str
    text: str = ""
    format: str = "TEXT"
    buttons: list[dict[str, Any]] = []
    example: dict[str, Any] = {}
    add_security_recommendation: bool = False
    code_expiration_minutes: int | None = None

    @property
    def variables(self) -> list[str]:
        """The names of the variables in the text, in order, without duplicates."""
        return list(dict.fromkeys(_VARIABLE.findall(self.text)))


class Template(msgspec.Struct, kw_only=True):
    """A template in one language."""

    name: str
    language: str
    category: str
    components: list[Component]
    status: str = "APPROVED"
    rejected_reason: str = "NONE"
    parameter_format: str = "POSITIONAL"
    id: str = ""

    def component(self, kind: str) -> Component | None:
        """Return the component of a type, such as ``BODY``; None if there is none."""
        return next(
            (component for component in self.components if component.type.upper() == kind), None
        )

    @property
    def buttons(self) -> list[dict[str, Any]]:
        """The template's buttons, in order."""
        found = self.component("BUTTONS")
        return found.buttons if found else []


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledTemplate:
    """The texts and buttons of a template with the parameters of a message filled in."""

    header: str
    body: str
    footer: str
    image: str
    buttons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """The account's templates, stored in the data folder."""

    path: Path
    _known: dict[tuple[str, str], Template] = field(default_factory=dict)

    @classmethod
    def read(cls, data: Path, *, extra: Path | None) -> "Templates":
        """Load the stored templates and a file. Raises UnreadableTemplatesError or OSError."""
        found = cls(path=data / FILE)
        found._put(HELLO_WORLD)
        for path in (APPROVED, found.path, extra):
            if path is not None and (path is not found.path or path.exists()):
                for template in _read(path):
                    found._put(template)
        return found

    def add(self, template: Template) -> Template | None:
        """Store a new template; return None if its name and language exist."""
        if (template.name, template.language) in self._known:
            return None
        added = self._put(template)
        self._write()
        return added

    def remove(self, name: str) -> bool:
        """Delete a template in all languages; return whether it existed."""
        keys = [key for key in self._known if key[0] == name]
        for key in keys:
            del self._known[key]
        if keys:
            self._write()
        return bool(keys)

    def get(self, name: str, language: str) -> Template | None:
        """Return a template; None if there is none of this name and language."""
        return self._known.get((name, language))

    def all(self, *, name: str | None = None) -> list[Template]:
        """Return all templates, or those with this name in all languages."""
        return [template for template in self._known.values() if name in (None, template.name)]

    def _put(self, template: Template) -> Template:
        new_id = str(10**14 + secrets.randbelow(9 * 10**14))
        found = msgspec.structs.replace(template, id=template.id or new_id)
        self._known[found.name, found.language] = found
        return found

    def _write(self) -> None:
        text = msgspec.json.format(msgspec.json.encode(self.all()))
        credentials.replace_secret_file(self.path, text + b"\n")


def parameters(message: Mapping[str, Any]) -> Iterator[tuple[str, int, Sequence[Any]]]:
    """Yield the type, the button index, and the parameters of each component of a message."""
    for component in message.get("components") or []:
        index = int(component.get("index") or 0)
        yield component["type"].upper(), index, component.get("parameters") or []


def fill(template: Template, message: Mapping[str, Any]) -> FilledTemplate:
    """Return a template with the parameters of a valid message filled in."""
    given = {(kind, index): found for kind, index, found in parameters(message)}
    header, footer = template.component("HEADER"), template.component("FOOTER")
    body = template.component("BODY")
    in_header = given.get(("HEADER", 0), ())
    return FilledTemplate(
        header=_text(header, in_header) if header and header.format == "TEXT" else "",
        body=_text(body, given.get(("BODY", 0), ())) if body else "",
        footer=footer.text if footer else "",
        image=_media(in_header),
        buttons=tuple(str(button.get("text", "")) for button in template.buttons),
    )


def _text(component: Component, given: Sequence[Any]) -> str:
    values = {
        parameter.get("parameter_name") or str(number): _value(parameter)
        for number, parameter in enumerate(given, start=1)
    }
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), component.text)


def _value(parameter: Mapping[str, Any]) -> str:
    kind = parameter.get("type")
    if kind in ("currency", "date_time"):
        return str(parameter.get(kind, {}).get("fallback_value", ""))
    return str(parameter.get("text", ""))


def _media(given: Sequence[Any]) -> str:
    for parameter in given:
        for kind in ("image", "video", "document"):
            media = parameter.get(kind)
            if isinstance(media, dict):
                return str(media.get("link") or media.get("id") or "")
    return ""


def _read(path: Path) -> list[Template]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Template])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableTemplatesError(f"{path} is no list of templates: {error}.") from error


HELLO_WORLD = Template(
    name="hello_world",
    language="en_US",
    category="UTILITY",
    components=[
        Component(type="HEADER", text="Hello World"),
        Component(type="BODY", text="Welcome and congratulations!! This message is a test."),
        Component(type="FOOTER", text="WhatsApp Business Platform sample message"),
    ],
)
