"""``docs/problems`` and ``docs/failures``: a page for each code, whose example is what is sent."""

import json
import re
from typing import Any

import pytest
from django.test import RequestFactory

from api.http import problems
from domain.errors import FailureCode
from notifyproject.platform import doc_pages
from notifyproject.serving.refusals import REFUSALS, Refusal
from tests.support.source import ROOT
from tests.support.tables import each_case

SITE = "https://docs.example.com"
CATALOGUE = {
    found.code: found
    for found in vars(problems).values()
    if isinstance(found, problems.ProblemType)
}
REFUSED = {code: Refusal(status, code, detail) for _, status, code, detail in REFUSALS}
PROBLEMS = sorted(CATALOGUE.keys() | REFUSED.keys())
SECTIONS = ("\n**Who can change it:** ", "\n**What to do:** ")


def names_in(folder: str) -> set[str]:
    return {path.stem for path in (ROOT / "docs" / folder).glob("*.md")} - {"README"}


def page(folder: str, code: str) -> str:
    return (ROOT / "docs" / folder / f"{code}.md").read_text(encoding="utf-8")


def example(text: str) -> dict[str, Any]:
    (found,) = re.findall(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    fields: dict[str, Any] = json.loads(found)
    return fields


def sent(code: str) -> dict[str, Any]:
    """Return what a response with a problem has."""
    if code in CATALOGUE:
        request = RequestFactory().get("/")
        response = problems.problem_response(CATALOGUE[code].example_error(), request)
        body: dict[str, Any] = json.loads(response.content)
    else:
        body = json.loads(REFUSED[code].as_bytes(request_id="1").partition(b"\r\n\r\n")[2])
    return body


@pytest.fixture(autouse=True)
def _site(settings: Any) -> None:
    settings.DOCS_URL = SITE


def test_each_code_has_a_page() -> None:
    assert names_in("problems") == set(PROBLEMS)
    assert names_in("failures") == set(FailureCode)


@each_case("code", PROBLEMS)
def test_page_of_a_problem_says_what_is_sent(code: str) -> None:
    text, body = page("problems", code), sent(code)
    assert text.startswith(f"# `{code}`: {body['title']}\n")
    assert all(section in text for section in SECTIONS)
    shown = example(text)
    assert shown == {name: body[name] for name in shown}
    assert shown["type"] == f"{SITE}/problems/{code}.html"


@each_case("code", list(FailureCode))
def test_page_of_a_failure_code_has_what_it_needs(code: FailureCode) -> None:
    text = page("failures", code)
    assert text.startswith(f"# `{code}`: ")
    assert all(section in text for section in SECTIONS)
    assert example(text)["failure_code"] == code
    assert doc_pages.failure_page(code) == f"{SITE}/failures/{code}.html"


@each_case("folder", ["problems", "failures"])
def test_list_has_each_page(folder: str) -> None:
    listed = re.findall(r"\(([a-z0-9_]+)\.md\)", (ROOT / "docs" / folder / "README.md").read_text())
    assert listed == sorted(names_in(folder))


def test_without_a_site_there_are_no_addresses(settings: Any) -> None:
    settings.DOCS_URL = ""
    assert doc_pages.problem_type("not_found") == "urn:notifications:problem:not_found"
    assert doc_pages.failure_page("bounced") == ""
    assert sent("request_timeout")["type"] == "urn:notifications:problem:request_timeout"
