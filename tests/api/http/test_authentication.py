"""Keys and scopes."""

from access.models import Scope
from tests.support.clients.api import App, new_app
from tests.support.tables import each_case


@each_case(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Bearer ntf_abcdefghij_" + "x" * 43,
        "Basic YWRhOmFkYQ==",
        "Token ntf_abcdefghij_" + "x" * 43,
        "Bearer ntf_" + "é" * 10 + "_" + "x" * 43,
    ],
)
def test_request_without_a_valid_key_is_unauthenticated(app: App, header: str | None) -> None:
    headers = {"Authorization": header} if header is not None else {}
    answer = app.http.get("/api/v1/notifications", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_admin_scope_allows_every_operation(db: None) -> None:
    assert new_app("admin", Scope.ADMIN).notify().status_code == 202


def test_valid_request_id_is_returned_and_another_replaced(app: App) -> None:
    valid = "my-request-0001"
    for given in (valid, "x", "a" * 65, "a b c d e f g", "<script>alert</script>"):
        headers = {"Authorization": f"Bearer {app.key}", "X-Request-Id": given}
        answer = app.http.get("/api/v1/notifications", headers=headers)
        assert (answer.headers["X-Request-Id"] == given) is (given == valid)


def test_scheme_of_the_credential_has_no_case(app: App) -> None:
    """RFC 9110 11.1."""
    for scheme in ("bearer", "BEARER"):
        headers = {"Authorization": f"{scheme} {app.key}"}
        assert app.http.get("/api/v1/notifications", headers=headers).status_code == 200
