"""What each role sees of a file's content, and does with a file."""

import pytest
from bson import ObjectId
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client

from notifications.broadcasts import repository as broadcasts
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories.console_files import allow, checked, page_of, url
from tests.support.factories.files import HEADER, TYPE, csv_of, row
from tests.support.tables import each_case

from .test_files import confirmation

pytestmark = pytest.mark.usefixtures("db", "broker")

ADDRESS = "ada.lovelace@example.com"
TITLE = "An unusual title"
WRONG = "not-an-address"
PAGES = ("columns/", "check/", "preview/", "confirm/", "wrong.csv")
CONTENT = csv_of((ADDRESS, "1", TITLE, "1.50"), row(2, WRONG))
PATIENT = "Diagnosis of Ada Lovelace"
"""A header in which somebody has written about a person."""


@pytest.fixture(autouse=True)
def _roles(db: None) -> None:
    allow(TYPE, approval={"above": 0, "by": "approvers"})
    call_command("create_roles", verbosity=0)


def member(role: str, name: str = "") -> Client:
    user = make_staff(name or f"a-{role}")
    user.groups.add(Group.objects.get(name=role))
    return signed_in(user)


def shown(client: Client, file_id: str) -> dict[str, str]:
    """Return the text of each page that a client may open."""
    found = {}
    for page in PAGES:
        answer = client.get(url(file_id, page))
        if answer.status_code == 200:
            found[page] = b"".join(answer).decode()
    return found


@each_case(
    "role, opens, addresses, texts",
    [
        ("viewer", set(), set(), set()),
        ("support", set(), set(), set()),
        ("approver", set(), set(), set()),
        # Another operator: previews with masked addresses, and no cells of the file.
        ("operator", set(PAGES) - {"wrong.csv"}, set(), {"preview/"}),
        ("admin", set(PAGES), {"columns/", "preview/"}, {"columns/", "preview/"}),
    ],
)
def test_each_role_sees_of_another_person_s_file_what_it_may(
    role: str, opens: set[str], addresses: set[str], texts: set[str]
) -> None:
    file_id = checked(member("operator", f"owner-of-{role}"), CONTENT)
    pages = shown(member(role), file_id)
    assert set(pages) == opens
    assert {page for page, text in pages.items() if ADDRESS in text} == addresses
    assert {page for page, text in pages.items() if TITLE in text} == texts
    assert all(
        WRONG not in text for page, text in pages.items() if page not in addresses | {"wrong.csv"}
    )


def test_header_is_shown_to_whom_the_rows_are() -> None:
    owner = member("operator", "owner")
    content = csv_of((ADDRESS, "1", TITLE, "1.50", "x"), header=(*HEADER, PATIENT))
    file_id = checked(owner, content + csv_of(row(2, WRONG)).partition(b"\n")[2])
    named = {
        name: {page for page, text in shown(client, file_id).items() if PATIENT in text}
        for name, client in {
            "owner": owner,
            "admin": member("admin"),
            "another": member("operator", "another"),
        }.items()
    }
    of_content = {"columns/", "wrong.csv"}
    assert named == {"owner": of_content, "admin": of_content, "another": set()}
    page = shown(member("operator", "one more"), file_id)
    assert "Column 5" in page["columns/"]
    assert '<option value="email" selected>' in page["columns/"]
    assert "Email address" in page["check/"]


def test_owner_sees_the_own_file() -> None:
    owner = member("operator", "owner")
    pages = shown(owner, checked(owner, CONTENT))
    assert set(pages) == set(PAGES)
    assert {page for page, text in pages.items() if ADDRESS in text} == {"columns/", "preview/"}


def test_approver_sees_what_will_go_and_approves() -> None:
    owner, approver = member("operator", "owner"), member("approver")
    file_id = checked(owner, CONTENT)
    given = confirmation(owner, file_id) | {"without_wrong": "on"}
    assert owner.post(url(file_id, "confirm/"), given).status_code == 302
    place = f"/admin/notifications/broadcast/{file_id}/change/"
    assert TITLE in page_of(approver.get(place))
    viewer = page_of(member("viewer").get(place))
    assert TITLE not in viewer
    assert ADDRESS not in viewer
    document = broadcasts.read(ObjectId(file_id))
    fingerprint = document["approval"]["fingerprint"]
    approve = place.replace("/change/", "/approve/")
    assert owner.post(approve, {"fingerprint": fingerprint}).status_code == 403
    admin = member("admin")
    assert admin.post(approve, {"fingerprint": fingerprint}).status_code == 302
    assert broadcasts.read(ObjectId(file_id))["status"] == "scheduled"
