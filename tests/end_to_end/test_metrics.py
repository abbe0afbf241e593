"""What Grafana asks for is on ``/metrics`` of a stack that has had load."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from monitoring import prometheus
from scripts import grafana
from tasks import tasks
from tests.support.clients.api import App, when
from tests.support.waiting import until

from .test_push import notify as notify_by_push
from .test_push import register, report_receipt
from .test_sms import notify as notify_by_sms

pytestmark = pytest.mark.usefixtures("worker", "quick_retries")
FILES = sorted(path.name for path in grafana.FOLDER.iterdir())
SELECTOR = re.compile(r"(notify_\w+)(?:\{(.*?)\})?")
MATCHER = re.compile(r'(\w+)(=~|!=|=)"(.*?)"')
CHOSEN = re.compile(r"\$\w+")
"""A variable, of which a reader chooses values that exist."""


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    prometheus.clear()
    yield
    prometheus.clear()


def expressions(file: str) -> list[str]:
    """Return what a dashboard, its choices, or the alert rules ask Prometheus for."""
    text = (grafana.FOLDER / file).read_text(encoding="utf-8")
    if file.endswith(".yaml"):
        return [rule["expr"] for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    board = json.loads(text)
    choices = [
        choice["query"] for choice in board["templating"]["list"] if choice["type"] == "query"
    ]
    return choices + [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def labels_of_the_result(expression: str) -> set[str]:
    """Return the labels by which an expression groups, or of which it lists the values."""
    found = re.findall(r"by \((.*?)\)", expression)
    found += re.findall(r"label_values\(\w+, (\w+)\)", expression)
    return {label for names in found for label in names.split(", ")}


def is_selected(sample: Sample, matchers: str) -> bool:
    """Return whether a sample has the labels that an expression wants."""
    found = sample.labels
    return all(
        name in found and (CHOSEN.fullmatch(value) or (found[name] == value) is (sign != "!="))
        for name, sign, value in MATCHER.findall(matchers)
    )


def samples(url: str) -> list[Sample]:
    prometheus.clear()
    answer = urllib3.request("GET", f"{url}/metrics")
    assert answer.status == 200
    families = text_string_to_metric_families(answer.data.decode())
    return [sample for family in families for sample in family.samples]


def missing(found: list[Sample], file: str) -> list[str]:
    """Return the expressions of a file to which no sample is an answer."""
    return [
        expression
        for expression in expressions(file)
        for name, matchers in SELECTOR.findall(expression)
        if not any(
            sample.name == name
            and is_selected(sample, matchers)
            and labels_of_the_result(expression) <= sample.labels.keys()
            for sample in found
        )
    ]


def send_some_of_each(app: App, received: Any) -> None:
    """Have messages delivered, opened, retried, and failed, on several channels."""
    phone, gone = register(app, "adas-phone"), register(app, "unregistered-adas-old-phone")
    flaky = app.notify(recipient={"email": "flaky@example.com"})
    bounced = app.notify(recipient={"email": "bounce@example.com"})
    code = notify_by_sms(app)
    push = notify_by_push(app)
    when(app, push, "sent")
    (request,) = received("adas-phone")
    report_receipt(app, phone, request["body"]["message"], "opened")
    until(lambda: app.get(f"/devices/{gone}").json()["is_active"] is False)
    for answer, status in (
        (flaky, "delivered"),
        (bounced, "failed"),
        (code, "delivered"),
        (push, "delivered"),
    ):
        when(app, answer, status)


def test_dashboards_and_alerts_name_only_what_metrics_have(
    app: App, live_server: Any, received: Any
) -> None:
    send_some_of_each(app, received)
    for task in (tasks.sweep, tasks.roll_up):
        task.delay()
    assert all(expressions(file) for file in FILES)
    until(
        lambda: not any(missing(samples(live_server.url), file) for file in FILES),
        otherwise=lambda: str([missing(samples(live_server.url), file) for file in FILES]),
    )
