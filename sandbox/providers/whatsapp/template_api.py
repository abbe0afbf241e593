"""The Graph API's routes for message templates. New templates are approved at once."""

import re
from collections.abc import Mapping

import msgspec

from ...responses import ProviderResponse
from ..base import IncomingRequest
from . import answers
from .answers import GraphError
from .templates import Template, Templates

CATEGORIES = ("AUTHENTICATION", "MARKETING", "UTILITY")
EXISTS = 2388024
_NAME = re.compile(r"[a-z0-9_]{1,512}", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}(_[A-Z]{2})?", re.ASCII)


def handle(incoming: IncomingRequest, templates: Templates) -> ProviderResponse | GraphError:
    """Return the answer to a request for the account's templates."""
    match incoming.method:
        case "GET":
            return _list(templates, incoming.query)
        case "POST":
            return _create(templates, incoming.body or b"")
        case "DELETE":
            if templates.remove(incoming.query.get("name", "")):
                return answers.success({"success": True})
            return _invalid("There is no template of this name.")
    return _invalid(f"Unsupported {incoming.method.lower()} request.")


def _list(templates: Templates, query: Mapping[str, str]) -> ProviderResponse:
    found = [msgspec.to_builtins(one) for one in templates.all(name=query.get("name"))]
    return answers.success({"data": found, "paging": {"cursors": {"before": "MAZDZD"}}})


def _create(templates: Templates, body: bytes) -> ProviderResponse | GraphError:
    try:
        template = msgspec.json.decode(body, type=Template)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _invalid(f"{error}.")
    template.category = template.category.upper()
    if problem := _problem(template):
        return _invalid(problem)
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


def _invalid(details: str, *, subcode: int | None = None) -> GraphError:
    return GraphError(100, 400, f"Invalid parameter: {details}", subcode=subcode)
