"""Validation of template messages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import Fault
from .templates import MEDIA, Component, Template, Templates, fill, parameters

MAX_BODY_LENGTH = 1024
MAX_CODE_LENGTH = 15
"""Characters of the code of an authentication template."""
_INDEX = re.compile(r"[0-9]{1,2}", re.ASCII)
_BAD_TEXT = re.compile(r"[\n\t]| {5}")
_STATES = {"PAUSED": 132015, "DISABLED": 132016}
_TEXTS = ("text", "currency", "date_time")


def problem(given: Any, templates: Templates) -> Fault | None:
    """Return the first error of the object ``template`` of a message."""
    if not isinstance(given, dict):
        return Fault(131008, "Parameter 'template' is mandatory for type 'template'")
    if shape := next(_shape(given), None):
        return shape
    name, language = given["name"], given["language"]["code"]
    template = templates.get(name, language)
    if template is None or template.status not in ("APPROVED", *_STATES):
        return Fault(132001, f"template name ({name}) does not exist in {language}")
    if template.status in _STATES:
        return Fault(_STATES[template.status])
    return next(_problems(template, given), None)


def _shape(given: Mapping[str, Any]) -> Iterator[Fault]:
    for key in given.keys() - {"name", "language", "components"}:
        yield Fault(100, f'Unexpected key "{key}" on param "template".')
    name, language = given.get("name"), given.get("language")
    if not isinstance(name, str) or not name:
        yield Fault(131008, "Parameter 'template.name' is mandatory")
    if not isinstance(language, dict) or not isinstance(language.get("code"), str):
        yield Fault(131008, "Parameter 'template.language.code' is mandatory")
    components = given.get("components", [])
    if not isinstance(components, list) or not all(map(_is_component, components)):
        yield Fault(100, "Param template['components'] must be a list of components.")


def _is_component(component: Any) -> bool:
    if not isinstance(component, dict) or not isinstance(component.get("type"), str):
        return False
    given, index = component.get("parameters", []), str(component.get("index", 0))
    return (
        isinstance(given, list)
        and all(isinstance(parameter, dict) for parameter in given)
        and _INDEX.fullmatch(index) is not None
    )


def _problems(template: Template, given: Mapping[str, Any]) -> Iterator[Fault]:
    filled = {(kind, index): found for kind, index, found in parameters(given)}
    for kind in ("HEADER", "BODY"):
        component = template.component(kind)
        found = filled.pop((kind, 0), ())
        if component is not None and kind == "HEADER" and component.format in MEDIA:
            yield from _media(component, found)
        else:
            yield from _texts(component, found, named=template.parameter_format == "NAMED")
    yield from _buttons(template, filled)
    if len(fill(template, given).body) > MAX_BODY_LENGTH:
        yield Fault(132005, "body: the translated text is longer than 1024 characters")


def _texts(
    component: Component | None, found: Sequence[Mapping[str, Any]], *, named: bool
) -> Iterator[Fault]:
    names = component.variables if component else []
    where = component.type.lower() if component else "component"
    if len(found) != len(names):
        yield _wrong_count(where, len(found), expected=len(names))
        return
    for parameter in found:
        yield from _parameter(parameter, where)
    if named and {parameter.get("parameter_name") for parameter in found} != set(names):
        yield Fault(132000, f"{where}: the parameter names must be {', '.join(names)}")


def _parameter(parameter: Mapping[str, Any], where: str) -> Iterator[Fault]:
    kind = parameter.get("type")
    if kind not in _TEXTS:
        received = kind or "UNKNOWN"
        yield Fault(132012, f"{where}: Format mismatch, expected TEXT, received {received}")
    elif kind == "text":
        text = parameter.get("text")
        if not isinstance(text, str) or not text:
            yield Fault(131008, "Parameter of type text is missing text value")
        elif _BAD_TEXT.search(text):
            bad = "new-line/tab characters or more than 4 consecutive spaces"
            yield Fault(100, f"Param text cannot have {bad}")
    elif not isinstance(parameter.get(kind), dict):
        yield Fault(131008, f"Parameter of type {kind} is missing {kind} value")


def _media(component: Component, found: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    expected = component.format
    if len(found) != 1:
        yield _wrong_count("header", len(found), expected=1)
        return
    received = str(found[0].get("type", "UNKNOWN")).upper()
    media = found[0].get(expected.lower())
    if received != expected or not isinstance(media, dict):
        yield Fault(132012, f"header: Format mismatch, expected {expected}, received {received}")
    elif not isinstance(media.get("link") or media.get("id"), str):
        yield Fault(131008, f"header: {expected.lower()} needs a link or an id")


def _wrong_count(where: str, found: int, *, expected: int) -> Fault:
    text = f"number of localizable_params ({found}) does not match the expected number of params"
    return Fault(132000, f"{where}: {text} ({expected})")


def _buttons(
    template: Template, filled: Mapping[tuple[str, int], Sequence[Any]]
) -> Iterator[Fault]:
    for kind, index in filled:
        if kind != "BUTTON" or index >= len(template.buttons):
            yield Fault(132012, f"{kind.lower()}: the template has no such component")
    for index, button in enumerate(template.buttons):
        kind = str(button.get("type", "Url"))
        has_variable = kind.upper() == "URL" and "{{" in str(button.get("url", ""))
        is_needed = has_variable or kind.upper() in ("COPY_CODE", "OTP")
        found = filled.get(("BUTTON", index), ())
        if is_needed and len(found) != 1:
            where = f"buttons: Button at index {index} of type {kind.title()}"
            yield Fault(131008, f"{where} requires a parameter")
        elif (
            is_needed
            and template.category == "AUTHENTICATION"
            and len(str(found[0].get("text", ""))) > MAX_CODE_LENGTH
        ):
            yield Fault(131009, f"The code has more than {MAX_CODE_LENGTH} characters")
