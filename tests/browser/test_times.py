"""Times in the browser's time zone."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import expect

from domain.time import utc_now
from tests.browser.screen import Screen
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db")

LIST = "/admin/notifications/notification/"
TOKYO = timedelta(hours=9)


@pytest.fixture
def in_tokyo(screen: Screen) -> Iterator[Screen]:
    session = screen.page.context.new_cdp_session(screen.page)
    session.send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    yield screen
    session.send("Emulation.setTimezoneOverride", {"timezoneId": ""})
    session.detach()


def test_time_is_local_with_utc_beside_it(in_tokyo: Screen) -> None:
    yesterday = utc_now().replace(minute=5, second=7) - timedelta(days=1)
    # In Tokyo, the second is of the next day.
    times = [yesterday.replace(hour=hour) for hour in (9, 20)]
    documents = [factories.accepted(created_at=at) for at in times]
    in_tokyo.sign_in()
    in_tokyo.open(LIST)
    shown = in_tokyo.page.locator("#result_list time")
    expect(shown).to_have_text([beside(at) for at in reversed(times)])
    for at, document in zip(times, documents, strict=True):
        in_tokyo.open(f"{LIST}{document['_id']}/change/")
        moment = in_tokyo.page.locator(".moment").first
        expect(moment.locator("time")).to_have_text(f"{at + TOKYO:%Y-%m-%d %H:%M:%S}")
        expect(moment).to_contain_text(f"{at:%H:%M:%S} UTC")


def beside(at: datetime) -> str:
    local = at + TOKYO
    day = "" if local.date() == at.date() else f"{at:%Y-%m-%d} "
    return f"{local:%Y-%m-%d %H:%M} {day}{at:%H:%M} UTC"


def test_two_times_fit_in_one_line_of_a_phone(in_tokyo: Screen) -> None:
    factories.accepted(created_at=utc_now().replace(hour=20))
    in_tokyo.sign_in()
    in_tokyo.open(LIST)
    assert in_tokyo.fits()
    in_tokyo.resize("phone")
    in_tokyo.page.evaluate("document.fonts.ready.then(() => true)")
    box = in_tokyo.page.locator("#result_list tr.data-row th").bounding_box()
    assert box is not None
    assert box["height"] < 24
