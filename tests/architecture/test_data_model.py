"""The page on the data model is what the models and their documents say."""

from scripts import data_model


def test_page_is_current() -> None:
    assert data_model.PAGE.read_text(encoding="utf-8") == data_model.page(), "run make data-model"


def test_names_the_writers_that_are_known() -> None:
    page = data_model.page()
    writers = ("registration", "status", "subscriptions")
    assert f"Written by {', '.join(f'`devices/{name}.py`' for name in writers)}." in page
    assert "`delivery[].status`" in page
