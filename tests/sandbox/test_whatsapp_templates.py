"""WhatsApp templates in the sandbox: storage, and validation of template messages."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.__main__ import main
from tests.support.clients.sandbox import Box, RunSandbox
from tests.support.providers.sandbox_whatsapp import (
    ADA,
    ORDER,
    WhatsAppClient,
    details,
    error,
    message,
    template,
    words,
)
from tests.support.tables import each_case


def worded(text: str, *, example: Any = None) -> dict[str, Any]:
    """Return the changes of a template: a name, and a body with this text."""
    given = {"body_text": [["x"]]} if example is None else example
    body = {"type": "BODY", "text": text, "example": given}
    return {"name": "worded", "components": [body]}


@pytest.fixture
def chats(box: Box) -> WhatsAppClient:
    chats = WhatsAppClient(box=box)
    assert chats.add_template().status == 200
    return chats


def body_of(*texts: Any) -> list[dict[str, Any]]:
    """Return the components of a template message, with these parameters for the body."""
    whole = template()["template"]["components"]
    return [{**whole[1], "parameters": [words(text) for text in texts]}, whole[0], whole[2]]


def test_accepted_template_is_filled(chats: WhatsAppClient) -> None:
    answer = chats.post(template())
    assert answer.status == 200
    assert answer.json()["messages"][0]["message_status"] == "accepted"
    [sent] = chats.box.control("GET", "/messages")["results"]
    assert (sent["subject"], sent["text"]) == (
        "Order 1001",
        "Hello Ada, your order 1001 has shipped.",
    )
    assert (sent["channel"], sent["to"], sent["reference"]) == ("whatsapp", [ADA], "ref-1")


def test_new_account_has_hello_world(chats: WhatsAppClient) -> None:
    content = {"name": "hello_world", "language": {"code": "en_US"}}
    assert chats.post(message("template", content)).status == 200
    assert chats.box.control("GET", "/messages")["results"][0]["subject"] == "Hello World"


@each_case(
    "changes, status, code, words_",
    [
        ({"name": "other"}, 404, 132001, "template name (other) does not exist in en"),
        (
            {"language": {"code": "pt_BR"}},
            404,
            132001,
            "template name (order_shipped) does not exist in pt_BR",
        ),
        ({"name": ""}, 400, 131008, "template.name"),
        ({"language": "en"}, 400, 131008, "template.language.code"),
        ({"extra": 1}, 400, 100, 'Unexpected key "extra"'),
        ({"components": "x"}, 400, 100, "must be a list of components"),
        ({"components": [{"type": "body", "index": "9" * 5000}]}, 400, 100, "list of components"),
        (
            {"components": []},
            400,
            132000,
            "header: number of localizable_params (0) does not match",
        ),
        (
            {"components": body_of("Ada")},
            400,
            132000,
            "localizable_params (1) does not match the expected number of params (2)",
        ),
        ({"components": body_of("Ada", "1", "2")}, 400, 132000, "(3) does not match"),
        ({"components": body_of("Ada", "")}, 400, 131008, "missing text value"),
        ({"components": body_of("Ada", 5)}, 400, 131008, "missing text value"),
        ({"components": body_of("Ada", "a\nb")}, 400, 100, "new-line/tab characters"),
        ({"components": body_of("Ada", "a     b")}, 400, 100, "4 consecutive spaces"),
        ({"components": body_of("x" * 1000, "y" * 100)}, 400, 132005, "longer than 1024"),
        (
            {"components": template()["template"]["components"][:2]},
            400,
            131008,
            "Button at index 0 of type Url requires a parameter",
        ),
        (
            {
                "components": [
                    *template()["template"]["components"],
                    {"type": "button", "index": 7, "parameters": [words("x")]},
                ]
            },
            400,
            132012,
            "no such component",
        ),
        (
            {
                "components": [
                    {"type": "header", "parameters": [{"type": "image", "image": {"id": "1"}}]},
                    *template()["template"]["components"][1:],
                ]
            },
            400,
            132012,
            "header: Format mismatch, expected TEXT, received image",
        ),
    ],
)
def test_message_that_does_not_match_its_template_is_refused(
    chats: WhatsAppClient, changes: dict[str, Any], status: int, code: int, words_: str
) -> None:
    answer = chats.post(template(**changes))
    assert (answer.status, error(answer)["code"]) == (status, code)
    assert words_ in details(answer)


@pytest.mark.parametrize(
    ("status", "code"), [("PAUSED", 132015), ("DISABLED", 132016), ("REJECTED", 132001)]
)
def test_template_without_approval_is_refused(
    chats: WhatsAppClient, status: str, code: int
) -> None:
    chats.add_template({**ORDER, "language": "de", "status": status})
    answer = chats.post(template(language={"code": "de"}))
    assert error(answer)["code"] == code


def test_image_header_requires_one_image(chats: WhatsAppClient) -> None:
    header = {"type": "HEADER", "format": "IMAGE"}
    chats.add_template(
        {**ORDER, "name": "picture", "components": [header, {"type": "BODY", "text": "Look"}]}
    )
    image = {"type": "image", "image": {"link": "https://example.com/a.png"}}

    def send(*parameters: Any) -> int:
        component = {"type": "header", "parameters": list(parameters)}
        content = {"name": "picture", "language": {"code": "en"}, "components": [component]}
        answer = chats.post(message("template", content))
        return 200 if answer.status == 200 else error(answer)["code"]

    assert [send(image), send(), send(words("x")), send({"type": "image", "image": {}})] == [
        200,
        132000,
        132012,
        131008,
    ]


def test_named_parameters_must_match(chats: WhatsAppClient) -> None:
    example = [{"param_name": "first_name", "example": "Ada"}]
    body = {
        "type": "BODY",
        "text": "Hello {{first_name}}.",
        "example": {"body_text_named_params": example},
    }
    chats.add_template(
        {**ORDER, "name": "named", "parameter_format": "NAMED", "components": [body]}
    )
    for name, status in (("first_name", 200), ("name", 400)):
        parameter = {**words("Ada"), "parameter_name": name}
        component = {"type": "body", "parameters": [parameter]}
        content = {"name": "named", "language": {"code": "en"}, "components": [component]}
        assert chats.post(message("template", content)).status == status
    assert chats.box.control("GET", "/messages")["results"][0]["text"] == "Hello Ada."


def test_graph_api_creates_lists_and_deletes_templates(chats: WhatsAppClient) -> None:
    path = f"{chats.account.business_account_id}/message_templates"
    made = chats.add_template({**ORDER, "language": "pt_BR"}).json()
    assert (made["status"], made["category"]) == ("APPROVED", "UTILITY")
    listed = chats.graph("GET", f"{path}?name=order_shipped").json()["data"]
    assert [item["language"] for item in listed] == ["en", "pt_BR"]
    assert listed[1]["id"] == made["id"]
    assert chats.graph("DELETE", f"{path}?name=order_shipped").json() == {"success": True}
    assert chats.post(template()).status == 404
    assert error(chats.graph("DELETE", f"{path}?name=order_shipped"))["code"] == 100


@each_case(
    "changes, words_",
    [
        ({}, "Content in This Language Already Exists"),
        ({"name": "Order Shipped"}, "Param name"),
        ({"language": "English"}, "Param language"),
        ({"category": "POETRY"}, "Param category"),
        ({"components": []}, "one BODY"),
        ({"components": [{"type": "BODY", "text": "x"}] * 2}, "one BODY"),
        ({"components": "x"}, "Expected `array`"),
        (worded("{{1}} has shipped."), "Leading or trailing params"),
        (worded("Shipped: {{1}}"), "Leading or trailing params"),
        (worded("It is {{1}} now.", example={}), "an example of each variable"),
        (worded("It is {{1}} now.", example={"body_text": [["a", "b"]]}), "an example of each"),
        *(
            (worded("It is {{1}} now.", example={"body_text": [[value]]}), "an example of each")
            for value in ("", " ", "\ncustomer", "a\nb", "a\tb", "a     b", 7)
        ),
        (worded(""), "must have a text"),
        ({"category": "AUTHENTICATION"}, "fixed text and one OTP button"),
    ],
)
def test_invalid_template_is_refused(
    chats: WhatsAppClient, changes: dict[str, Any], words_: str
) -> None:
    answer = chats.add_template({**ORDER, **changes})
    assert (answer.status, error(answer)["code"]) == (400, 100)
    assert words_ in error(answer)["message"]


def test_templates_are_read_from_a_file_and_survive_a_restart(
    tmp_path: Path, run: RunSandbox
) -> None:
    given = tmp_path / "templates.json"
    given.write_text(json.dumps([ORDER]))
    with run(whatsapp_templates=given) as box:
        chats = WhatsAppClient(box=box)
        assert chats.post(template()).status == 200
        chats.add_template({**ORDER, "language": "de"})
    with run() as box:
        chats = WhatsAppClient(box=box)
        assert chats.post(template(language={"code": "de"})).status == 200


@pytest.mark.parametrize("content", ["", "{}", '[{"name": "x"}]'])
def test_unreadable_file_of_templates_is_named(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    given = tmp_path / "templates.json"
    given.write_text(content)
    arguments = ["--port", "0", "--data", str(data), "--whatsapp-templates", str(given)]
    assert main(arguments) == 1
    assert f"{given} is no list of templates" in capsys.readouterr().err


def test_authentication_template_has_metas_text_and_a_code_button(chats: WhatsAppClient) -> None:
    components = [
        {"type": "BODY", "add_security_recommendation": True},
        {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy"}]},
    ]
    code = {"name": "login", "language": "en", "category": "AUTHENTICATION"}
    assert chats.add_template({**code, "components": components}).status == 200
    body = {"type": "body", "parameters": [words("123456")]}
    button = {"type": "button", "sub_type": "url", "index": "0", "parameters": [words("123456")]}
    use = {"name": "login", "language": {"code": "en"}}
    assert chats.post(message("template", {**use, "components": [body]})).status == 400
    assert chats.post(message("template", {**use, "components": [body, button]})).status == 200
    text = chats.box.control("GET", "/messages")["results"][0]["text"]
    assert text.startswith("*123456* is your verification code.")


def test_name_chooses_the_review(chats: WhatsAppClient) -> None:
    path = f"{chats.account.business_account_id}/message_templates"
    for ending, expected in (
        ("pending", ("PENDING", "NONE")),
        ("rejected", ("REJECTED", "INVALID_FORMAT")),
    ):
        name = f"shipped_{ending}"
        assert chats.add_template({**ORDER, "name": name}).json()["status"] == expected[0]
        (listed,) = chats.graph("GET", f"{path}?name={name}").json()["data"]
        assert (listed["status"], listed["rejected_reason"]) == expected
        assert error(chats.post(template(name=name)))["code"] == 132001
    (row,) = chats.graph("GET", f"{path}?status=REJECTED&fields=name").json()["data"]
    assert row.keys() == {"id", "name"}


def test_templates_are_listed_page_by_page(chats: WhatsAppClient) -> None:
    path = f"{chats.account.business_account_id}/message_templates"
    everything = chats.graph("GET", f"{path}?limit=1000").json()["data"]
    assert len(everything) > 15
    found: list[Any] = []
    query = "?limit=7"
    while query:
        page = chats.graph("GET", path + query).json()
        found += page["data"]
        assert len(page["data"]) <= 7
        has_next = "next" in page["paging"]
        query = f"?limit=7&after={page['paging']['cursors']['after']}" if has_next else ""
    assert found == everything
    for bad in ("limit=0", "limit=x", "after=-1", f"after={'9' * 5000}"):
        assert error(chats.graph("GET", f"{path}?{bad}"))["code"] == 100
