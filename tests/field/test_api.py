"""Requests that did something else than their sender believed: parameters, hosts, and types."""

from typing import Any

import pytest

from access.models import Scope
from tests.support.clients.api import App, new_app, pointers, request

DEVICE = {"user_id": "ada", "device_token": "a-token-of-ada", "platform": "ios"}


def test_unknown_query_parameter_is_refused_on_every_route_without_parameters(app: App) -> None:
    """https://github.com/kestra-io/kestra/issues/18246"""
    app.put("/recipients/ada", {"email": "ada@example.com"})
    device = app.put("/devices", DEVICE).json()["id"]
    notification_id = app.notify().json()["id"]
    for path in (
        *("/recipients/ada", "/recipients/ada/preferences", "/recipients/ada/limits"),
        *(
            f"/devices/{device}",
            f"/notifications/{notification_id}",
            f"/notifications/{notification_id}/attempts",
        ),
        *("/types/payment_confirmed", "/limits", "/callbacks"),
    ):
        answer = app.get(path, colour="red")
        assert (answer.status_code, answer.json()["code"]) == (400, "unknown_parameter"), path
    assert app.post("/notifications?dry_run=true", request()).status_code == 400
    assert app.delete("/recipients/ada", confirm="no").status_code == 400
    assert app.get("/recipients/ada").status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("home.arpa", "x.home.arpa", "web.ns.svc", "localhost.localdomain", "a.lan", "b.corp"),
        *("printer.local", "metadata.google.internal", "x.localhost", "1.0.0.127.in-addr.arpa"),
    ],
)
def test_host_of_a_local_network_is_refused_for_callbacks_and_links(app: App, host: str) -> None:
    """RFC 6761 and RFC 8375."""
    hook = {"url": f"https://{host}/", "events": ["delivery.failed"]}
    assert pointers(app.put("/callbacks", hook)) == {"/url": "not_public"}
    content = {"subject": "s", "body": "b", "image_url": f"https://{host}/x.png"}
    assert pointers(app.notify(content=content)) == {"/content/image_url": "invalid_url"}


@pytest.mark.parametrize(
    "change", [{"is_active": False}, {"priority": "normal"}, {"priority": "high"}]
)
@pytest.mark.parametrize("slug", ["mfa_code", "forgot_password"])
def test_login_codes_are_switched_off_or_lowered_by_types_admin_alone(
    app: App, slug: str, change: dict[str, Any]
) -> None:
    shown = app.get(f"/types/{slug}").json()
    kept = ("name", "category", "channels", "priority", "sensitive_variables", "is_active")
    body = {name: shown[name] for name in kept} | change
    writer = new_app("writer", Scope.TEMPLATES_WRITE)
    answer = writer.put(f"/types/{slug}", body)
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert "types:admin" in answer.json()["detail"]
    assert app.get(f"/types/{slug}").json()["priority"] == "critical"
    admin = new_app("admin", Scope.TEMPLATES_WRITE, Scope.TYPES_ADMIN)
    assert admin.put(f"/types/{slug}", body).status_code == 200
