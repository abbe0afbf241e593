"""The Graph API's routes for message templates. A template's name chooses its review."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from ...responses import ProviderResponse
from ..base import IncomingRequest
from . import answers
from .answers import GraphError
from .templates import Component, Template, Templates

CATEGORIES = ("AUTHENTICATION", "MARKETING", "UTILITY")
AUTHENTICATION = "AUTHENTICATION"
EXISTS = 2388024
DANGLING = 2388299
NO_EXAMPLE = 2388043
PAGE_SIZE = 25
CODE_TEXT = "*{{1}}* is your verification code."
SECURITY_TEXT = " For your security, do not share this code."
_REVIEWS = {
    "_pending": ("PENDING", "NONE"),
    "_rejected": ("REJECTED", "INVALID_FORMAT"),
}
"""The outcome of Meta's review, by the ending of a template's name. Others are approved."""
_NAME = re.compile(r"[a-z0-9_]{1,512}", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,4}", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}(_[A-Z]{2,3})?", re.ASCII)
_EXAMPLE = re.compile(r"(?!\s*$)(?!.*( {5}|\t)).+", re.ASCII)
"""One line with a text."""


def handle(incoming: IncomingRequest, templates: Templates) -> ProviderResponse | GraphError:
    """Return the answer to a request for the account's templates."""
    match incoming.method:
        case "GET":
            return _list(templates, incoming.query, path=incoming.path)
        case "POST":
            return _create(templates, incoming.body or b"")
        case "DELETE":
            if templates.remove(incoming.query.get("name", "")):
                return answers.success({"success": True})
            return _invalid("There is no template of this name.")
    return _invalid(f"Unsupported {incoming.method.lower()} request.")


def _list(
    templates: Templates, query: Mapping[str, str], *, path: str
) -> ProviderResponse | GraphError:
    limit, after = query.get("limit", str(PAGE_SIZE)), query.get("after", "0")
    if not (_COUNT.fullmatch(limit) and _COUNT.fullmatch(after) and int(limit) > 0):
        return _invalid("Param limit or after is invalid.")
    start = int(after)
    end = start + int(limit)
    found = [
        msgspec.to_builtins(template)
        for template in templates.all(name=query.get("name"))
        if query.get("status") in (None, template.status)
    ]
    fields = query.get("fields", "").split(",") if query.get("fields") else None
    rows = [
        {name: template[name] for name in template if fields is None or name in {*fields, "id"}}
        for template in found[start:end]
    ]
    paging: dict[str, Any] = {"cursors": {"before": str(start), "after": str(end)}}
    if end < len(found):
        paging["next"] = f"{path}?{urlencode({**query, 'after': end})}"
    return answers.success({"data": rows, "paging": paging} if rows else {"data": []})


def _create(templates: Templates, body: bytes) -> ProviderResponse | GraphError:
    try:
        template = msgspec.json.decode(body, type=Template)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _invalid(f"{error}.")
    template.category = template.category.upper()
    if problem := _problem(template):
        return _invalid(problem)
    if refused := _text_problem(template):
        return refused
    if template.category == AUTHENTICATION:
        component = template.component("BODY")
        if component is not None:
            advice = SECURITY_TEXT if component.add_security_recommendation else ""
            component.text = CODE_TEXT + advice
    for ending, (status, reason) in _REVIEWS.items():
        if template.name.endswith(ending):
            template.status, template.rejected_reason = status, reason
    added = templates.add(template)
    if added is None:
        return _invalid("Content in This Language Already Exists", subcode=EXISTS)
    return answers.success({"id": added.id, "status": added.status, "category": added.category})


def _problem(template: Template) -> str | None:
    kinds = [component.type.upper() for component in template.components]
    if not _NAME.fullmatch(template.name):
        return "Param name must be lower case letters, digits and underscores."
    if not _LANGUAGE.fullmatch(template.language):
        return "Param language must be a language code like en or pt_BR."
    if template.category not in CATEGORIES:
        return f"Param category must be one of {{{', '.join(CATEGORIES)}}}."
    if kinds.count("BODY") != 1 or len(set(kinds)) < len(kinds):
        return "Param components must have one BODY, and each other type at most once."
    return None


def _text_problem(template: Template) -> GraphError | None:
    body = template.component("BODY") or Component(type="BODY")
    text = body.text.strip()
    if template.category == AUTHENTICATION:
        is_code = [str(button.get("type")).upper() for button in template.buttons] == ["OTP"]
        wrong = "An authentication template has a fixed text and one OTP button."
        return _invalid(wrong) if text or not is_code else None
    if not text:
        return _invalid("The BODY must have a text.")
    if text.startswith("{{") or text.endswith("}}"):
        return _invalid("Leading or trailing params are not allowed", subcode=DANGLING)
    if body.variables and not _has_examples(template, body):
        return _invalid("The BODY must have an example of each variable", subcode=NO_EXAMPLE)
    return None


def _has_examples(template: Template, body: Component) -> bool:
    if template.parameter_format == "NAMED":
        named = body.example.get("body_text_named_params") or []
        return {example.get("param_name") for example in named} == set(body.variables)
    examples = body.example.get("body_text") or [[]]
    return len(examples[0]) == len(body.variables) and all(
        isinstance(example, str) and _EXAMPLE.fullmatch(example) for example in examples[0]
    )


def _invalid(details: str, *, subcode: int | None = None) -> GraphError:
    return GraphError(100, 400, f"Invalid parameter: {details}", subcode=subcode)
