"""A program that stores and sends random templates, and measures their cost.

The program is a separate process so that a crash is visible. A file contains the current case.
"""

import gc
import json
import resource
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import django

ROUND = 250
"""Cases of one Hypothesis run, which keeps a record of every case until it ends."""


@dataclass(kw_only=True)
class Report:
    """Results of all cases."""

    accepted: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    """Counts by code."""
    storing_ms: list[float] = field(default_factory=list)
    """CPU time of each case, including the process that tries its HTML."""
    sending_ms: list[float] = field(default_factory=list)
    """Maximum CPU time of rendering and building requests for one channel and set of data."""
    most_mb: float = 0.0
    """The maximum growth of memory in one case."""
    largest: tuple[str, str] = ("", "")
    """The case with ``most_mb``."""
    costliest: tuple[str, str] = ("", "")


def main(folder: Path, *, count: int, first_seed: int) -> Report:
    from hypothesis import HealthCheck, Phase, given, seed, settings

    from tests.fuzz.template_cases import cases

    report = Report()
    _warm_up(folder)

    def one(case: tuple[str, str]) -> None:
        (folder / "case.json").write_text(json.dumps(case))
        before = _reset_peak()
        # Exclude the garbage of the generator of cases from collections.
        gc.freeze()
        _run(case, report, folder)
        gc.unfreeze()
        if (taken := _process_mb("VmHWM") - before) > report.most_mb:
            report.most_mb, report.largest = taken, case

    quiet = settings(
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    for done in range(0, count, ROUND):
        limited = settings(quiet, max_examples=min(ROUND, count - done))
        limited(seed(f"{first_seed}.{done}")(given(cases)(one)))()
        # Free the record before the next round.
        gc.collect()
    return report


def _run(case: tuple[str, str], report: Report, folder: Path) -> None:
    part, source = case
    parts = {"default": {"subject": "S", "body": "B", part: source}}
    began = _cpu()
    faults = _check(parts)
    spent = _cpu() - began
    if spent > max(report.storing_ms, default=0):
        report.costliest = case
    report.storing_ms.append(spent)
    if faults:
        report.refused[faults[0].code] = report.refused.get(faults[0].code, 0) + 1
        return
    report.accepted += 1
    report.sending_ms.append(_send(parts["default"], folder))


def _check(parts: Mapping[str, Mapping[str, str]]) -> list[Any]:
    from notifications.content.linting import lint_template
    from tests.fuzz.template_cases import DATA

    return lint_template(name="t", parts=parts, example_data=DATA, sensitive=frozenset({"order"}))


def _send(texts: Mapping[str, str], folder: Path) -> float:
    """Build the requests for every channel and set of data. Return the maximum CPU time."""
    from domain.channels import Channel
    from domain.content import Content, Recipient
    from notifications.content import engine, rendering, templates
    from tests.fuzz.template_cases import HOSTILE_DATA

    home = folder / "templates" / "notifications" / "t"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    for part, text in texts.items():
        (home / templates.Part(part).file_name).write_text(text, newline="")
    templates.clear()
    person = Recipient(name="Ada", locale="pt")
    most = 0.0
    for data in HOSTILE_DATA:
        for channel in Channel:
            began = _cpu()
            try:
                subject, body = rendering.render_text(
                    name="t", data=data, recipient=person, channels=[channel]
                )
            except engine.TemplateError:
                subject, body = "S", "B"
            content = Content(subject=subject, body=body, template_id="t", template_version=0)
            try:
                message = rendering.render_message(
                    channel=channel, content=content, data=data, recipient=person
                )
                _build_requests(channel, message)
            except engine.TemplateError:
                # The notification fails finally, and the worker continues with the next.
                continue
            finally:
                most = max(most, _cpu() - began)
    return most


def _build_requests(channel: Any, message: Any) -> None:
    """Build and encode the request of each provider of a channel, as its ``send`` does."""
    import msgspec

    from domain.channels import Channel
    from domain.errors import FailureCode, PermanentError
    from domain.time import utc_now
    from providers import sendgrid
    from providers.accounts import account_of
    from providers.contract import SendRequest
    from providers.fcm import messages
    from providers.mime import build_mail
    from providers.whatsapp.provider import text_message

    request = SendRequest(
        reference="6b049c091afe51127ee3cf2b.email.1",
        notification_id="6b049c091afe51127ee3cf2b",
        recipient="ada@example.com",
        recipient_name="Ada",
        message=message,
        category="transactional",
    )
    try:
        match channel:
            case Channel.EMAIL:
                msgspec.json.encode(sendgrid.build(account_of("sendgrid")).body(request))
                build_mail(request, sender="a@example.com", default_reply_to=None, files=())
            case Channel.PUSH:
                msgspec.json.encode(messages.build_payload(request, now=utc_now()))
            case Channel.WHATSAPP:
                msgspec.json.encode(text_message(request))
    except PermanentError as error:
        # Too large for the provider: the delivery fails, and the worker continues.
        if error.code is not FailureCode.TOO_LARGE:
            raise


def _warm_up(folder: Path) -> None:
    """Load everything that a process loads only once, before memory is measured."""
    home = folder / "templates" / "notifications"
    home.mkdir(parents=True)
    from django.conf import settings

    shutil.copytree(
        Path(settings.BASE_DIR) / "templates" / "notifications" / "_layout", home / "_layout"
    )
    settings.BASE_DIR = folder
    texts = {"subject": "S", "body": "{{ order | upcase }}", "email_html": "<p>{{ order }}</p>"}
    _check({"default": texts})
    _send(texts, folder)


def _reset_peak() -> float:
    """Reset the kernel's peak of memory. Return the current size in MB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _process_mb("VmRSS")


def _process_mb(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def _cpu() -> float:
    """Return the CPU milliseconds of this process and its finished children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1_000 * (time.process_time() + children.ru_utime + children.ru_stime)


if __name__ == "__main__":
    django.setup()
    made = main(Path(sys.argv[1]), count=int(sys.argv[2]), first_seed=int(sys.argv[3]))
    sys.stdout.write(json.dumps(asdict(made)))
