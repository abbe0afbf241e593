"""Writes ``deploy/grafana``: three dashboards and the alert rules: ``make grafana``.

Each web returns the values of the whole service, so expressions take the greatest of them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "deploy" / "grafana"
SOURCE: Mapping[str, str] = {"type": "prometheus", "uid": "${source}"}
LINES = "timeseries"
NUMBER = "stat"
WIDTH, HEIGHT = 24, 8
"""Columns of a dashboard, and rows of a panel."""
BY_PROVIDER = "notify_provider_deliveries_last_hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel with one line or number for each combination of labels that is left."""

    title: str
    expr: str
    legend: str = ""
    note: str = ""
    unit: str = "short"
    kind: str = LINES
    limit: float | None = None
    """The value from which a number is red."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A dashboard for one kind of readers."""

    name: str
    title: str
    panels: Sequence[Panel]
    chosen: str | None = None
    """The label of which a reader chooses values."""
    chosen_from: str = ""
    """The metric that has it."""


def latency(share: str) -> str:
    """Return an expression: within which time this share of deliveries was sent, by channel."""
    buckets = "notify_due_to_sent_seconds_last_hour_bucket"
    return f"histogram_quantile({share}, max by (channel, le) ({buckets}))"


def of_provider(event: str) -> str:
    """Return an expression: the deliveries of the last hour with an event, by provider."""
    chosen = f'{BY_PROVIDER}{{event="{event}", provider=~"$provider"}}'
    return f"max by (channel, provider) ({chosen})"


OPERATOR = Dashboard(
    name="operator",
    title="Notifications: operator",
    panels=[
        Panel(
            title="Oldest due, critical",
            expr='max(notify_oldest_due_seconds{priority="critical"})',
            note="Login codes are late from a minute on.",
            unit="s",
            kind=NUMBER,
            limit=60,
        ),
        Panel(
            title="Oldest due, others",
            expr='max(notify_oldest_due_seconds{priority!="critical"})',
            unit="s",
            kind=NUMBER,
            limit=300,
        ),
        Panel(
            title="Last sweep",
            expr='max(notify_last_seen_seconds{what="sweep"})',
            note="Ago. The sweep finds what a lost wake-up left.",
            unit="s",
            kind=NUMBER,
            limit=180,
        ),
        Panel(
            title="Open incidents",
            expr="sum(max by (kind) (notify_incidents_open))",
            kind=NUMBER,
            limit=1,
        ),
        Panel(
            title="Due, not claimed",
            expr="max by (priority) (notify_due)",
            legend="{{priority}}",
            note="Deliveries that wait for a worker.",
        ),
        Panel(
            title="Wake-ups in queues",
            expr="max by (priority, channel) (notify_queue_messages)",
            legend="{{priority}} {{channel}}",
        ),
        Panel(
            title="Waiting",
            expr="max by (state) (notify_waiting)",
            legend="{{state}}",
            note="For their time, another try, or a receipt.",
        ),
        Panel(
            title="Deliveries in the last hour",
            expr="sum by (event) (max by (event, channel, type) (notify_deliveries_last_hour))",
            legend="{{event}}",
        ),
        Panel(title="Sent within, half", expr=latency("0.5"), legend="{{channel}}", unit="s"),
        Panel(title="Sent within, 99 %", expr=latency("0.99"), legend="{{channel}}", unit="s"),
        Panel(
            title="Circuits",
            expr="max by (provider) (notify_circuit_open)",
            legend="{{provider}}",
            note="1 is open, 0.5 half open.",
        ),
        Panel(
            title="Paused by staff",
            expr="max by (provider) (notify_provider_paused)",
            legend="{{provider}}",
        ),
        Panel(
            title="Digests",
            expr="max(notify_digests_open)",
            legend="open",
        ),
        Panel(
            title="Digest overdue",
            expr="max(notify_digest_overdue_seconds)",
            legend="oldest",
            unit="s",
        ),
    ],
)
DEVELOPER = Dashboard(
    name="developer",
    title="Notifications: app",
    chosen="client",
    chosen_from="notify_client_deliveries_last_hour",
    panels=[
        Panel(
            title="Deliveries of the app in the last hour",
            expr="sum by (event) (max by (event, channel, client) "
            '(notify_client_deliveries_last_hour{client=~"$client"}))',
            legend="{{event}}",
        ),
        Panel(
            title="Failed finally, by channel",
            expr="max by (channel, client) "
            '(notify_client_deliveries_last_hour{client=~"$client", event="failed"})',
            legend="{{client}} {{channel}}",
        ),
        Panel(
            title="Sent, by type (all apps)",
            expr='max by (type, channel) (notify_deliveries_last_hour{event="sent"})',
            legend="{{type}} {{channel}}",
        ),
        Panel(
            title="Failed finally, by type (all apps)",
            expr='max by (type, channel) (notify_deliveries_last_hour{event="failed"})',
            legend="{{type}} {{channel}}",
        ),
        Panel(title="Sent within, 99 %", expr=latency("0.99"), legend="{{channel}}", unit="s"),
        Panel(
            title="Digests closed in the last hour",
            expr="max by (outcome) (notify_digests_closed_last_hour)",
            legend="{{outcome}}",
        ),
        Panel(
            title="Members of closed digests",
            expr="max by (outcome) (notify_digest_members_last_hour)",
            legend="{{outcome}}",
        ),
        Panel(
            title="Pushes at devices",
            expr="max by (event, platform) (notify_device_messages_last_hour)",
            legend="{{platform}} {{event}}",
        ),
    ],
)
PROVIDER = Dashboard(
    name="provider",
    title="Notifications: providers",
    chosen="provider",
    chosen_from=BY_PROVIDER,
    panels=[
        Panel(title="Sent", expr=of_provider("sent"), legend="{{provider}} {{channel}}"),
        Panel(
            title="Confirmed as delivered",
            expr=f"{of_provider('delivered')} / ({of_provider('sent')} > 0)",
            legend="{{provider}} {{channel}}",
            note="Of the deliveries that were sent. Receipts may take minutes.",
            unit="percentunit",
        ),
        Panel(
            title="Failed finally",
            expr=of_provider("failed"),
            legend="{{provider}} {{channel}}",
            note="Bounces included.",
        ),
        Panel(title="Retried", expr=of_provider("retried"), legend="{{provider}} {{channel}}"),
        Panel(
            title="Circuits",
            expr='max by (provider) (notify_circuit_open{provider=~"$provider"})',
            legend="{{provider}}",
            note="1 is open, 0.5 half open.",
        ),
        Panel(
            title="Circuits of platforms, hosts, and rooms",
            expr='max by (provider) (notify_circuit_scopes_open{provider=~"$provider"})',
            legend="{{provider}}",
        ),
        Panel(
            title="Read",
            expr=of_provider("read"),
            legend="{{provider}} {{channel}}",
        ),
        Panel(
            title="Pushes that failed",
            expr='max by (platform) (notify_device_messages_last_hour{event="failed"})',
            legend="{{platform}}",
        ),
    ],
)
DASHBOARDS = (OPERATOR, DEVELOPER, PROVIDER)
INCIDENTS = "docs/guides/incidents.md"
ALERTS: Sequence[tuple[str, str, str, str]] = (
    (
        "CodesAreLate",
        'max(notify_oldest_due_seconds{priority="critical"}) > 60',
        "1m",
        "Critical messages, such as login codes, wait for over a minute.",
    ),
    (
        "DeliveriesAreOverdue",
        'max(notify_oldest_due_seconds{priority!="critical"}) > 300',
        "5m",
        "The oldest queued delivery is over five minutes late.",
    ),
    (
        "SweepIsOverdue",
        'max(notify_last_seen_seconds{what="sweep"}) > 180',
        "1m",
        "No sweep for over three minutes: scheduled deliveries and retries don't start.",
    ),
    (
        "CircuitIsOpen",
        "max by (provider) (notify_circuit_open) > 0",
        "5m",
        "Requests to the provider fail, and its deliveries wait.",
    ),
    (
        "DigestIsOverdue",
        "max(notify_digest_overdue_seconds) > 600",
        "5m",
        "A digest should have been sent over ten minutes ago.",
    ),
    (
        "ServiceIsNotScraped",
        "absent(notify_due)",
        "5m",
        "No process of the service answers /metrics.",
    ),
)
"""Each alert's name, condition, time for which it must hold, and what it means."""


def dashboard_json(dashboard: Dashboard) -> str:
    """Return a dashboard that Grafana imports."""
    variables: list[dict[str, Any]] = [
        {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    ]
    if dashboard.chosen:
        query = f"label_values({dashboard.chosen_from}, {dashboard.chosen})"
        variables.append(
            {
                "name": dashboard.chosen,
                "label": dashboard.chosen.title(),
                "type": "query",
                "datasource": SOURCE,
                "query": query,
                "refresh": 2,
                "includeAll": True,
                "multi": True,
                "current": {"text": "All", "value": "$__all"},
            }
        )
    model = {
        "uid": f"notify-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["notifications"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": variables},
        "panels": _panels(dashboard.panels),
    }
    return json.dumps(model, indent=1) + "\n"


def _panels(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    found, x, y = [], 0, 0
    for number, panel in enumerate(panels, start=1):
        width, height = (WIDTH // 4, HEIGHT // 2) if panel.kind == NUMBER else (WIDTH // 2, HEIGHT)
        found.append(_panel(panel, number, {"x": x, "y": y, "w": width, "h": height}))
        x = (x + width) % WIDTH
        y += height if x == 0 else 0
    return found


def _panel(panel: Panel, number: int, place: Mapping[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.limit is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.limit}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.note,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [{"refId": "A", "expr": panel.expr, "legendFormat": panel.legend or "__auto"}],
    }


def alerts_yaml() -> str:
    """Return the rules that Prometheus reads."""
    lines = ["groups:", "  - name: notifications", "    rules:"]
    for name, expr, lasting, meaning in ALERTS:
        lines += [
            f"      - alert: {name}",
            f"        expr: {json.dumps(expr)}",
            f"        for: {lasting}",
            "        annotations:",
            f"          summary: {json.dumps(meaning)}",
            f"          description: See {INCIDENTS} of the service.",
        ]
    return "\n".join(lines) + "\n"


def files() -> Mapping[str, str]:
    """Return the text of each file by its name."""
    dashboards = {f"{each.name}.json": dashboard_json(each) for each in DASHBOARDS}
    return {**dashboards, "alerts.yaml": alerts_yaml()}


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
