"""Long texts without a blank don't widen a page, at the width of a desktop and of a phone."""

import pytest

from domain.states import DeliveryStatus
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.browser.screen import Screen
from tests.support.clients.console import register_ada
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2


def test_long_subject_and_name_fit(screen: Screen) -> None:
    """https://github.com/unfoldadmin/django-unfold/issues/608"""
    register_ada(name=LONG)
    document = factories.settled(DeliveryStatus.FAILED, at=utc_now(), user_id="ada")
    content = {"content.subject": LONG, "content.body": f"{LONG} {LONG}", "entity_id": LONG[:128]}
    collection("notifications").update_one({"_id": document["_id"]}, {"$set": content})
    collection("notification_types").update_one({"_id": "mfa_code"}, {"$set": {"name": LONG[:120]}})
    screen.sign_in()
    for path in (
        f"/admin/notifications/notification/{document['_id']}/change/",
        "/admin/recipients/recipient/ada/change/",
        "/admin/recipients/recipient/",
        "/admin/notifications/notification/",
        "/admin/notifications/notificationtype/mfa_5Fcode/change/",
    ):
        screen.open(path)
        assert screen.fits(), path
