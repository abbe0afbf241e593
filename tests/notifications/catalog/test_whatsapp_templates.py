"""WhatsApp templates of types: the built-in ones, their submission, and their status."""

import json
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from domain.time import utc_now
from notifications.catalog import types, whatsapp_templates
from notifications.catalog.definitions import MAX_WHATSAPP_BODY, OWN_TEXTS
from providers import registry
from providers.accounts import account_of
from providers.whatsapp import build
from providers.whatsapp import templates as whatsapp_api
from sandbox.assembly import Sandbox
from sandbox.config import Config
from sandbox.providers.whatsapp.templates import APPROVED
from sandbox.server import run_in_thread
from tests.support.clients.sandbox import QUICK
from tests.support.factories.notifications import personal_types
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

TYPE_PAGE = "/admin/notifications/notificationtype/payment_confirmed/change/"
WITH_TEMPLATES = {type_.slug for type_ in personal_types()}
OWN = {
    "locale": "en",
    "name": "parcel_lost",
    "language": "en_US",
    "parameters": ["order_id"],
    "body": "Order {{1}} is lost. We are sorry.",
}


@pytest.fixture
def meta(db: None, settings: Any, tmp_path: Path) -> Iterator[Sandbox]:
    with run_in_thread(Config(data=tmp_path, timings=QUICK)) as sandbox:
        settings.WHATSAPP_URL = sandbox.url
        settings.WHATSAPP_TOKEN = sandbox.whatsapp.access_token
        settings.WHATSAPP_BUSINESS_ACCOUNT_ID = sandbox.whatsapp.business_account_id
        registry.clear()
        yield sandbox
    registry.clear()


def run(*arguments: str) -> list[str]:
    output = StringIO()
    call_command("whatsapp_templates", *arguments, stdout=output)
    return output.getvalue().splitlines()


def add_template(**changes: Any) -> None:
    templates = [OWN | changes]
    types.define_type("payment_confirmed", {"approved_templates": templates}, now=utc_now())


def built_in_submissions() -> list[Any]:
    every = [whatsapp_templates.submissions(default.fields) for default in personal_types()]
    return [submission for found in every for _, submission in found]


def test_built_in_types_have_templates_in_both_languages() -> None:
    for default in personal_types():
        languages = [
            (template["locale"], template["language"])
            for template in default.fields["approved_templates"]
        ]
        assert languages == [("en", "en"), ("pt", "pt_PT")], default.slug


def test_built_in_templates_follow_the_rules_of_the_api_and_of_meta() -> None:
    """developers.facebook.com/docs/whatsapp/message-templates/guidelines: no variable at the start
    or the end, none beside another one, in order; few variables for the length of the text."""
    for default in personal_types():
        for template in default.fields["approved_templates"]:
            body = template.get("body")
            if body is None:
                continue
            assert len(body) <= MAX_WHATSAPP_BODY
            found = re.findall(r"{{(\d+)}}", body)
            assert found == [str(number + 1) for number in range(len(template["parameters"]))]
            assert not body.startswith("{{")
            assert not body.rstrip(" .!").endswith("}}"), body
            assert not re.search(r"}}\W{0,2}{{", body), body
            words = len(re.findall(r"\w+", re.sub(r"{{\d}}", "", body)))
            assert words >= 3 * len(found) + 1, body
            known = {*default.definition.example_data, *OWN_TEXTS}
            assert set(template["parameters"]) <= known
            assert not set(template["parameters"]) & set(default.definition.sensitive_variables)
    categories = {
        submission["name"]: submission["category"]
        for submission in built_in_submissions()
        if submission is not None
    }
    assert categories.pop("marketing_message") == "MARKETING"
    assert {
        categories.pop(name) for name in ("mfa_code", "user_activation", "forgot_password")
    } == {"AUTHENTICATION"}
    assert set(categories.values()) == {"UTILITY"}


def test_sandbox_has_approved_the_built_in_templates() -> None:
    approved = json.loads(APPROVED.read_text())
    for submission in approved:
        if submission["category"] == "AUTHENTICATION":
            # Meta's own text.
            del submission["components"][0]["text"]

    def by_name(submission: Any) -> tuple[str, str]:
        return submission["name"], submission["language"]

    assert sorted(approved, key=by_name) == sorted(built_in_submissions(), key=by_name)


@each_case(
    "value, example",
    [
        ("\ncustomer \n1234", "customer 1234"),
        ("a\t b" + " " * 9 + "c", "a b c"),
        ("", "order_id"),
        (" \n", "order_id"),
        (["A", "B"], "AB"),
        (7, "7"),
    ],
)
def test_example_is_one_line_with_a_text(value: Any, example: str) -> None:
    """As in https://github.com/shridarpatil/frappe_whatsapp/issues/81: Meta refuses others."""
    stored = {
        "category": "orders",
        "approved_templates": [OWN],
        "example_data": {"order_id": value},
    }
    ((_, submission),) = whatsapp_templates.submissions(stored)
    assert submission["components"][0]["example"] == {"body_text": [[example]]}


def test_status_lists_the_templates_of_active_types(meta: Sandbox) -> None:
    lines = run("status")
    assert len(lines) == 2 * len(WITH_TEMPLATES)
    assert all(line.endswith(": APPROVED") for line in lines)
    assert run("status", "--type", "mfa_code") == [
        "mfa_code: mfa_code (en): APPROVED",
        "mfa_code: mfa_code (pt_PT): APPROVED",
    ]


def test_push_submits_missing_templates_once(meta: Sandbox) -> None:
    add_template()
    name = "payment_confirmed: parcel_lost (en_US)"
    assert run("push") == [
        f"{name}: to submit",
        "1 to submit. Nothing was changed; submit with --yes.",
    ]
    assert run("status", "--type", "payment_confirmed") == [f"{name}: NOT_SUBMITTED"]
    assert run("push", "--yes") == [f"{name}: APPROVED", "1 submitted."]
    assert run("push", "--yes") == ["0 submitted."]


def test_rejected_template_shows_the_reason_and_is_not_submitted_again(meta: Sandbox) -> None:
    add_template(name="lost_rejected")
    assert "payment_confirmed: lost_rejected (en_US): REJECTED" in run("push", "--yes")[0]
    (line,) = run("status", "--type", "payment_confirmed")
    assert line.endswith("REJECTED, INVALID_FORMAT")
    assert run("push", "--yes") == ["0 submitted."]


def test_template_without_a_wording_is_left_to_its_owner(meta: Sandbox) -> None:
    add_template(body=None)
    first, last = run("push", "--yes")
    assert "no wording" in first
    assert last == "0 submitted."


def test_refusal_by_meta_is_shown(meta: Sandbox) -> None:
    add_template(body="It is lost: {{1}}")
    output = StringIO()
    with pytest.raises(CommandError, match="1 of 1 templates weren't submitted"):
        call_command("whatsapp_templates", "push", "--yes", stdout=output)
    assert "Leading or trailing params are not allowed" in output.getvalue()


def test_lost_response_of_a_submission_is_no_error(meta: Sandbox) -> None:
    add_template()
    (template,) = whatsapp_templates.read_templates(type_slug="payment_confirmed", timeout=LIMIT)
    for _ in range(2):
        submitted = whatsapp_templates.submit(template, timeout=LIMIT)
        assert (submitted.name, submitted.language) == ("parcel_lost", "en_US")


def test_templates_are_read_page_by_page(meta: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = whatsapp_api.list_templates(build(account_of("whatsapp")), timeout=LIMIT)
    monkeypatch.setattr(whatsapp_api, "_LIST", {**whatsapp_api._LIST, "limit": "4"})
    assert whatsapp_api.list_templates(build(account_of("whatsapp")), timeout=LIMIT) == everything
    assert len(everything) > 2 * len(WITH_TEMPLATES)


@pytest.mark.usefixtures("db")
def test_missing_account_and_invalid_token_are_named(meta: Sandbox, settings: Any) -> None:
    settings.WHATSAPP_TOKEN = "EAAexpired"
    registry.clear()
    with pytest.raises(CommandError, match="access token is invalid"):
        run("status")
    settings.WHATSAPP_BUSINESS_ACCOUNT_ID = ""
    registry.clear()
    with pytest.raises(CommandError, match="WHATSAPP_BUSINESS_ACCOUNT_ID"):
        run("status")


def test_type_page_shows_the_status(meta: Sandbox, console: Client, settings: Any) -> None:
    page = console.get(TYPE_PAGE).content.decode()
    assert "WhatsApp templates" in page
    assert page.count(">Approved<") == 2
    add_template(name="lost_rejected")
    assert ">Not submitted<" in console.get(TYPE_PAGE).content.decode()
    run("push", "--yes")
    rejected = console.get(TYPE_PAGE).content.decode()
    assert ">Rejected<" in rejected
    assert "INVALID_FORMAT" in rejected
    settings.WHATSAPP_TOKEN = ""
    registry.clear()
    assert "Status unknown. Set WHATSAPP_TOKEN" in console.get(TYPE_PAGE).content.decode()
