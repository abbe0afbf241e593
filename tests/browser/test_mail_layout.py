"""The layout of email in a browser: phone and desktop, light and dark."""

from collections.abc import Iterator
from functools import cache

import pytest
from playwright.sync_api import Browser, Page, expect

from domain.channels import Channel
from domain.content import Content, Recipient
from notifications.catalog.shipped_types import shipped_types
from notifications.content import rendering
from notifications.content.rendering import render_message, render_text

WIDTHS = (375, 700)
MIN_CONTRAST = 4.5
"""WCAG 2, level AA."""
LINK = "https://example.com/orders/12345"
LONG = "https://example.com/" + "very-long-without-a-break" * 12
# As wide as the card on a desktop, so that a phone has to shrink it.
PICTURE = "https://pictures.example/wide.svg"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="400">'
    '<rect width="9" height="9"/></svg>'
)
TEMPLATED = {d.slug: d for d in shipped_types() if rendering.exists(d.slug)}
CONTRASTS = """() => {
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = parse(color).map((v) => {
      const s = v / 255;
      return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (parse(color)[3] !== 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([walker.currentNode.data.trim().slice(0, 40), ratio]);
  }
  return found;
}"""


def mail(content: Content, *, locale: str = "en", **data: object) -> str:
    message = render_message(
        channel=Channel.EMAIL,
        content=content,
        data=data,
        recipient=Recipient(name="Ada", locale=locale),
        unsubscribe_url="https://example.com/unsubscribe",
    )
    assert message.html is not None
    return message.html


@cache
def of_type(slug: str, *, locale: str) -> str:
    data = dict(TEMPLATED[slug].definition.example_data)
    person = Recipient(name="Ada", locale=locale)
    subject, body = render_text(name=slug, data=data, recipient=person)
    content = Content(subject=subject, body=body, template_id=slug, deep_link=LINK)
    return mail(content, locale=locale, **data)


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def window(chromium: Browser) -> Iterator[Page]:
    """Open a window that loads nothing but one image."""
    context = chromium.new_context()
    context.route("**/*", lambda route: route.abort())
    context.route(PICTURE, lambda route: route.fulfill(body=SVG, content_type="image/svg+xml"))
    yield context.new_page()
    context.close()


@pytest.fixture(params=WIDTHS)
def page(request: pytest.FixtureRequest, window: Page, scheme: str) -> Page:
    """Set the width of a phone or a desktop, and the colour scheme."""
    window.set_viewport_size({"width": request.param, "height": 800})
    window.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    return window


def assert_legible(page: Page, name: str = "mail") -> None:
    """Check that nothing is wider than the window, and that all text has enough contrast."""
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 3, name
    assert [(text, ratio) for text, ratio in contrasts if ratio < MIN_CONTRAST] == [], name


def test_shipped_mails_fit_and_are_legible(page: Page) -> None:
    for slug in TEMPLATED:
        for locale in ("en", "pt"):
            page.set_content(of_type(slug, locale=locale))
            assert_legible(page, f"{slug} in {locale}")


def test_mail_has_its_sender_a_large_button_and_an_unsubscribe_link(page: Page) -> None:
    page.set_content(of_type("order_shipped", locale="en"))
    expect(page.get_by_text("This message was sent by Notifications.")).to_be_visible()
    expect(page.get_by_role("link", name="Unsubscribe from messages like this")).to_be_visible()
    button = page.get_by_role("link", name="Open")
    expect(button).to_be_visible()
    expect(button).to_have_attribute("href", LINK)
    box = button.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    if page.viewport_size == {"width": 375, "height": 800}:
        assert box["width"] > 280, "a thumb finds it anywhere on the line"


def test_long_word_and_wide_picture_fit(page: Page) -> None:
    content = Content(
        subject=f"Subject {LONG}", body=f"Look: {LONG}\n\n{'x' * 400}", image_url=PICTURE
    )
    page.set_content(mail(content), wait_until="load")
    assert_legible(page)
    picture = page.locator("img").bounding_box()
    assert picture is not None
    assert picture["width"] <= 560
    assert picture["height"] > 50


def test_preheader_is_hidden_in_the_mail(page: Page) -> None:
    page.set_content(of_type("payment_confirmed", locale="en"))
    expect(page.locator(".preheader")).to_be_hidden()
    assert "Your payment of 49.90" in str(page.locator(".preheader").text_content())


def test_mail_follows_the_dark_scheme(page: Page, scheme: str) -> None:
    page.set_content(of_type("mfa_code", locale="en"))
    for place in ("body", ".card"):
        shade = page.locator(place).first.evaluate(
            "e => getComputedStyle(e).backgroundColor.match(/\\d+/g).map(Number)"
        )
        assert (sum(shade[:3]) < 250) is (scheme == "dark"), place


def test_mail_without_style_sheet_support_is_legible(page: Page, scheme: str) -> None:
    """The essential styles are inline."""
    html = of_type("order_shipped", locale="en")
    head, _, rest = html.partition("<style")
    page.set_content(head + rest.partition("</style>")[2])
    assert_legible(page)
    button = page.get_by_role("link", name="Open")
    colours = button.evaluate(
        "e => [getComputedStyle(e).color, getComputedStyle(e.parentElement).backgroundColor]"
    )
    assert colours == ["rgb(255, 255, 255)", "rgb(79, 70, 229)"]
