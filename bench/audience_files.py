"""The check of a file of recipients, while login codes are sent by the same worker."""

import csv
import io
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any
from uuid import uuid4

from bson import ObjectId

from domain.states import Duplicates
from domain.time import utc_now
from notifyproject.db.collections import collection

from . import draining, environment, mail, posting
from .environment import Bench
from .figures import Figure, Progress, at_most
from .processes import Program, cpu_seconds, resident_megabytes, wait_until

HEADER = ("email", "order_id", "video_title", "amount", *(f"note {number}" for number in range(6)))
CODES_PER_SECOND, CODES_AT_ONCE = 5.0, 25
SAMPLE_SECONDS = 0.1
TIMEOUT = 1_800.0


def measure_files(bench: Bench, *, rows: int, log_progress: Progress) -> Iterator[Figure]:
    """Measure how long a text and a workbook take to be checked, and what that costs others."""
    timed = {"SENDGRID_URL": f"{bench.http.url}/timed"}
    table = [HEADER, *(_row(number) for number in range(rows))]
    with (
        environment.run_workers(bench, environment=timed) as (worker,),
        posting.run_service(bench) as web,
    ):
        posting.post_at_rate(web, posting.WARM_UP_COUNT, body=_code)
        wait_until(draining.is_all_final, timeout=60, what="the warm-up was not sent")
        for name, write in (("CSV", _csv), ("XLSX", _workbook)):
            content = write(table)
            done = Event()
            with ThreadPoolExecutor(1) as pool:
                codes = pool.submit(_post_codes, web, done)
                before, began = cpu_seconds(worker.pid), time.monotonic()
                try:
                    peak = _check(content, worker)
                finally:
                    done.set()
                seconds = time.monotonic() - began
                cpu = cpu_seconds(worker.pid) - before
                posted = codes.result()
            wait_until(draining.is_all_final, timeout=60, what="not every code was sent")
            waits = posting.waits(bench, posted)
            log_progress(f"{name}: {seconds:.0f} s, {len(waits)} codes beside it")
            yield Figure(
                key=f"file {name}",
                label=f"read and check {rows:,} rows of {len(HEADER)} columns",
                unit="s",
                ours=seconds,
                goals=(at_most(60),),
                note="one worker, which also sends the codes, and the parser of a workbook",
            )
            yield Figure(
                key=f"file {name} CPU",
                label="… and the CPU time of the worker, its codes included",
                unit="CPU s",
                ours=cpu,
            )
            yield Figure(
                key=f"file {name} memory",
                label="… and the most memory of the worker and its parser",
                unit="MB",
                ours=peak,
                goals=(at_most(300),),
            )
            yield Figure(
                key=f"file {name} codes",
                label=f"POST → provider of {len(waits):,} codes beside it, p99",
                unit="ms",
                ours=1000 * waits[len(waits) * 99 // 100],
                goals=(at_most(1_000),),
            )


def _check(content: bytes, worker: Program) -> float:
    """Have the worker check a file. Return the most megabytes that it and its children had."""
    from notifications.files import control, repository
    from notifications.files.control import NewFileRequest
    from notifications.intake.requests import Caller

    caller = Caller(client_id=mail.CLIENT, idempotency_key=uuid4().hex)
    new = NewFileRequest(type=mail.TYPE, name="people", size=len(content))
    document = control.create(new, caller=caller, now=utc_now()).document
    size = repository.CHUNK_BYTES
    for number in range(repository.chunk_count(len(content))):
        chunk = content[number * size : (number + 1) * size]
        control.store_chunk(document, number, chunk, now=utc_now())
    begin = partial(control.check, targets=None, duplicates=Duplicates.REFUSE, country=None)
    begin(document, now=utc_now())
    peak, until = 0.0, time.monotonic() + TIMEOUT
    while _is_open(document["_id"]):
        if time.monotonic() > until:
            raise RuntimeError("the file is not checked")
        peak = max(peak, sum(_megabytes(pid) for pid in [worker.pid, *worker.children()]))
        time.sleep(SAMPLE_SECONDS)
    return peak


def _is_open(file_id: ObjectId) -> bool:
    found: Any = collection("audience_files").find_one({"_id": file_id}, {"status": 1})
    if found["status"] in ("reading", "checking"):
        return True
    if found["status"] != "checked":
        raise RuntimeError(f"the file is {found['status']}")
    return False


def _megabytes(pid: int) -> float:
    try:
        return resident_megabytes(pid)
    except (OSError, RuntimeError):
        # A parser that has ended.
        return 0.0


def _post_codes(web: posting.WebServer, done: Event) -> dict[ObjectId, float]:
    posted: dict[ObjectId, float] = {}
    while not done.is_set():
        posted |= posting.post_at_rate(web, CODES_AT_ONCE, body=_code, rate=CODES_PER_SECOND)
    return posted


def _code(number: int) -> dict[str, Any]:
    """Return a request for a code. Its priority is that of a code, without the scope for these."""
    return {**mail.request_body(number), "priority": "high"}


def _row(number: int) -> tuple[str, ...]:
    notes = (f"note {note} of {number}" for note in range(6))
    return (f"user{number}@example.com", f"{number}", "Sunrise", f"{number}.50", *notes)


def _csv(table: Sequence[Sequence[str]]) -> bytes:
    written = io.StringIO()
    csv.writer(written).writerows(table)
    return written.getvalue().encode()


def _workbook(table: Sequence[Sequence[str]]) -> bytes:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("People")
    for row in table:
        sheet.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()
