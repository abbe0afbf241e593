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


@pytest.mark.parametrize("hour", [9, 20], ids=["the same day", "the next day"])
def test_time_is_local_with_utc_beside_it(in_tokyo: Screen, hour: int) -> None:
    at = utc_now().replace(hour=hour, minute=5, second=7) - timedelta(days=1)
    document = factories.accepted(created_at=at)
    in_tokyo.sign_in()
    in_tokyo.open(LIST)
    expect(in_tokyo.page.locator("#result_list time")).to_have_text(beside(at))
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
