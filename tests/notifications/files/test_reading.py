"""A workbook is parsed by a process of its own. Whatever that does, the worker goes on."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from domain.tables.reading import read_table
from domain.tables.table import UnreadableTableError
from notifications.files import reading
from notifications.files.reading import ParserBusyError, ParserLostError, open_table
from notifyproject.settings.environment import BASE_DIR
from tests.support.subprocess import children
from tests.support.tables import each_case
from tests.support.waiting import until
from tests.support.workbooks import inline, with_shared_texts, with_sheet, workbook

PARSER = "from notifications.files import workbook_parser as parser; "
END = '{"type": "end"}'
LIMITS = "parser.main(cpu_seconds=60, memory_bytes=2**28)"


@pytest.fixture(autouse=True)
def _own_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let no test wait for one of another process."""
    monkeypatch.setattr(reading, "LOCK", tmp_path / "lock")


def use_program(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let another program stand for the parser."""
    monkeypatch.setattr(reading, "PROGRAM", ("-c", program))


def wait_for_rows() -> None:
    """Stands for the renewal of a lease."""


def read(content: bytes, *, while_waiting: Callable[[], None] = wait_for_rows) -> list[list[str]]:
    """Return the header and the rows of a file."""
    with open_table(content, while_waiting=while_waiting) as table:
        return [list(table.header), *(list(row.cells) for row in table.rows)]


def refusal(content: bytes) -> UnreadableTableError:
    with pytest.raises(UnreadableTableError) as refused:
        read(content)
    return refused.value


def with_empty_rows(count: int) -> bytes:
    """Return a workbook with which a parser is busy, and of which it has nothing to say."""
    blank = "".join(f'<row r="{n}"/>' for n in range(2, count))
    return with_sheet(f'<row r="1">{inline("A1", "a")}</row>{blank}')


def test_workbook_is_read_as_in_the_process_itself() -> None:
    rows = [[f"n{n}", n, n / 4, n % 2 == 0, None, "é" * n] for n in range(450)]
    content = workbook(["a", "b", "c", "d", "e", "f"], *rows, [float(10**16)])
    with open_table(content, while_waiting=wait_for_rows) as table:
        here = read_table(content)
        assert (table.format, table.sheet, table.header) == (here.format, here.sheet, here.header)
        assert list(table.rows) == list(here.rows)


def test_text_is_read_without_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    assert read(b"a,b\n1,2\n") == [["a", "b"], ["1", "2"]]


@each_case(
    "content, code",
    [
        (b"PK\x03\x04 nothing", "broken_workbook"),
        (with_sheet('<row r="x"/>'), "broken_workbook"),
        (workbook(["a"] * 61), "too_many_columns"),
        (with_sheet(""), "empty"),
    ],
)
def test_refusal_of_a_workbook_is_that_of_its_parser(content: bytes, code: str) -> None:
    assert refusal(content).code == code


def test_workbook_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_CPU_SECONDS", 1)
    refused = refusal(with_empty_rows(600_000))
    assert refused.code == "too_complex"
    assert "CSV" in refused.detail


def test_workbook_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_MEMORY_BYTES", 32 * 1024 * 1024)
    texts = "".join(f"<si><t>{number:x}</t></si>" for number in range(700_000))
    assert refusal(with_shared_texts(texts, "")).code == "unpacks_too_large"


def test_worker_hears_that_its_parser_works(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = threading.Event()
    use_program(monkeypatch, f"{PARSER} parser.ALIVE_SECONDS = 0.01; {LIMITS}")
    assert read(with_empty_rows(50_000), while_waiting=waited.set) == [["a"]]
    assert waited.is_set()


@each_case(
    "program, is_refused",
    [
        ("import os; os.kill(os.getpid(), 11)", True),
        ("import os; os.kill(os.getpid(), 24)", True),
        ("import os; os.kill(os.getpid(), 9)", False),
        ("import os; os.kill(os.getpid(), 15)", False),
        ("raise ImportError", False),
        ("print('{', end='')", False),
    ],
)
def test_end_of_a_parser_refuses_only_what_ended_it(program: str, is_refused: bool) -> None:
    error = UnreadableTableError if is_refused else ParserLostError
    with pytest.MonkeyPatch.context() as patch:
        use_program(patch, program)
        with pytest.raises(error):
            read(workbook(["a"], [1]))


def test_parser_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")
    header = "{'type': 'header', 'sheet': None, 'cells': sorted(os.environ)}"
    use_program(monkeypatch, f"import json, os; print(json.dumps({header})); print('{END}')")
    (names,) = read(workbook(["a"]))
    assert names == ["LC_ALL"]


def test_parser_ends_before_its_worker_without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    score = "parser.Header(None, (open('/proc/self/oom_score_adj').read().strip(),))"
    program = f"{PARSER} parser._messages = lambda _: [{score}, parser.End()]; {LIMITS}"
    use_program(monkeypatch, program)
    assert read(workbook(["a"])) == [["1000"]]


def test_parser_ends_with_a_reader_that_wants_no_more_rows() -> None:
    content, before = workbook(["a"], *[["x" * 1_000]] * 500), children(os.getpid())
    with open_table(content, while_waiting=wait_for_rows) as table:
        next(table.rows)
    assert children(os.getpid()) == before


def test_one_workbook_at_a_time_is_parsed_on_a_machine() -> None:
    """Each parser may need 256 MB, and each thread of each process could have one."""
    content = workbook(["a"], [1])
    with open_table(content, while_waiting=wait_for_rows):
        with pytest.raises(ParserBusyError):
            read(content)
        assert read(b"a\n1\n") == [["a"], ["1"]], "a text needs no parser"
    assert refusal(with_sheet("")).code == "empty"
    assert read(content) == [["a"], ["1"]]


def test_turn_of_a_parser_ends_with_its_worker(tmp_path: Path) -> None:
    program = (
        "from notifications.files import reading; import sys; from pathlib import Path; "
        f"reading.LOCK = Path({str(tmp_path / 'lock')!r}); turn = reading._only_parser(); "
        "turn.__enter__(); print(1, flush=True); sys.stdin.read()"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=BASE_DIR,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"1\n"
        with pytest.raises(ParserBusyError):
            read(workbook(["a"], [1]))
        worker.kill()
    assert read(workbook(["a"], [1])) == [["a"], ["1"]]


def test_parser_ends_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "workbook"
    file.write_bytes(workbook(["a"], [1]))
    parser = f"{PARSER} import time; parser.read_table = lambda _: time.sleep(600); {LIMITS}"
    program = (
        "from pathlib import Path; from notifications.files import reading; "
        f"reading.PROGRAM = ('-c', {parser!r}); content = Path({str(file)!r}).read_bytes(); "
        "reading.open_table(content, while_waiting=print).__enter__()"
    )
    worker = subprocess.Popen([sys.executable, "-c", program], cwd=BASE_DIR)
    (parser_id,) = until(lambda: children(worker.pid))
    # It has read the workbook, and works.
    until(lambda: len(list(Path(f"/proc/{parser_id}/task").iterdir())) > 1)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    until(lambda: has_ended(parser_id))


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, even if nobody has asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
