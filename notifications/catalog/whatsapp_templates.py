"""Submits the WhatsApp templates of types to Meta's review, and reads their status."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.states import Category
from providers.accounts import account_of
from providers.whatsapp import build
from providers.whatsapp import templates as whatsapp_api
from providers.whatsapp.provider import WhatsApp
from providers.whatsapp.templates import TemplateStatus

from ..documents.catalog import NOTIFICATION_TYPES, NotificationTypeDocument

NOT_SUBMITTED = "NOT_SUBMITTED"
"""The status of a template that Meta doesn't know."""
COPY_CODE_LABELS = {"pt": "Copiar código"}  # The button's label by language; Meta limits it to 25
EXAMPLE_CONTENT = {"subject": "Your request", "body": "We have received it and are working on it."}
"""Examples of a request's own texts, as a template without a template of texts may have them."""
DEFAULT_COPY_CODE_LABEL = "Copy code"


class NoAccountError(Exception):
    """WHATSAPP_TOKEN or WHATSAPP_BUSINESS_ACCOUNT_ID is missing."""

    def __init__(self) -> None:
        super().__init__("Set WHATSAPP_TOKEN and WHATSAPP_BUSINESS_ACCOUNT_ID.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeTemplate:
    """A template of a type, with its status at Meta."""

    type_slug: str
    name: str
    language: str
    submission: Mapping[str, Any] | None
    """The request that submits it. None without a text."""
    status: str = NOT_SUBMITTED
    reason: str = ""
    """Why Meta rejected it."""

    @property
    def can_be_submitted(self) -> bool:
        """Whether it has a text that Meta doesn't know yet."""
        return self.status == NOT_SUBMITTED and self.submission is not None


def read_templates(*, type_slug: str | None = None, timeout: float) -> list[TypeTemplate]:
    """Return the templates of one type or of all active types, with their status at Meta.

    ``timeout`` is in seconds for each request. Raises NoAccountError, ProviderError, and
    PyMongoError.
    """
    match = {"is_active": True} if type_slug is None else {"_id": type_slug}
    documents = list(NOTIFICATION_TYPES().find(match).sort("_id", 1))
    if not any(document.get("approved_templates") for document in documents):
        return []
    known = {
        (template.name, template.language): template
        for template in whatsapp_api.list_templates(_account(), timeout=timeout)
    }
    return [found for document in documents for found in _templates_of(document, known)]


def submit(template: TypeTemplate, *, timeout: float) -> TemplateStatus:
    """Submit a template. Repeating it changes nothing. Raises NoAccountError, ProviderError."""
    if template.submission is None:
        raise ValueError("a template without a text can't be submitted")
    return whatsapp_api.submit_template(_account(), template.submission, timeout=timeout)


def submissions(document: NotificationTypeDocument) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield the templates of a stored type, each with the request that submits it or None."""
    for template in document.get("approved_templates") or ():
        yield template, _submission(template, document)


def _account() -> WhatsApp:
    account = build(account_of("whatsapp"))
    if not account.token or not account.business_account_id:
        raise NoAccountError
    return account


def _templates_of(
    document: NotificationTypeDocument, known: Mapping[tuple[str, str], TemplateStatus]
) -> Iterator[TypeTemplate]:
    for template, submission in submissions(document):
        name, language = template["name"], template["language"]
        found = known.get((name, language))
        yield TypeTemplate(
            type_slug=document["_id"],
            name=name,
            language=language,
            submission=submission,
            status=found.status if found else NOT_SUBMITTED,
            reason=found.reason if found else "",
        )


def _submission(
    template: Mapping[str, Any], document: NotificationTypeDocument
) -> Mapping[str, Any] | None:
    fields = {"name": template["name"], "language": template["language"]}
    if template.get("button"):
        components = _authentication_components(template["language"])
        return {**fields, "category": "AUTHENTICATION", "components": components}
    if not template.get("body"):
        return None
    is_marketing = document["category"] == Category.MARKETING
    category = "MARKETING" if is_marketing else "UTILITY"
    body: dict[str, Any] = {"type": "BODY", "text": template["body"]}
    if template["parameters"]:
        # Reviewers of Meta read the template with these examples.
        known = {**EXAMPLE_CONTENT, **document["example_data"]}
        examples = [_example(name, known[name]) for name in template["parameters"]]
        body["example"] = {"body_text": [examples]}
    return {**fields, "category": category, "components": [body]}


def _example(name: str, value: Any) -> str:
    """Return an example as one line with a visible text: Meta refuses others."""
    text = "".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(text.split()) or name


def _authentication_components(language: str) -> Sequence[Mapping[str, Any]]:
    label = COPY_CODE_LABELS.get(language.partition("_")[0], DEFAULT_COPY_CODE_LABEL)
    button = {"type": "OTP", "otp_type": "COPY_CODE", "text": label}
    return [
        {"type": "BODY", "add_security_recommendation": True},
        {"type": "BUTTONS", "buttons": [button]},
    ]
