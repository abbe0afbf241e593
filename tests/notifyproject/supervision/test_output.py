"""One log of several programs."""

import os
import subprocess
import sys

import pytest

from notifyproject.settings.environment import BASE_DIR
from notifyproject.supervision.output import MAX_LOG_LINE, MAX_UNWRITTEN, READ_BYTES, LabelledLog

WRITES = """
from notifyproject.supervision.output import LabelledLog
log = LabelledLog(is_coloured=False)
log.print_lines("x" * 200_000)
print("asked", flush=True, file=__import__("sys").stderr)
for _ in range(3):
    log.pump(0.01)
print("free", flush=True, file=__import__("sys").stderr)
"""
"""More than a pipe holds, and nobody reads it."""


@pytest.fixture
def log() -> LabelledLog:
    return LabelledLog(is_coloured=False)


def write(log: LabelledLog, name: str, *parts: bytes) -> None:
    with log.open(name) as output:
        for part in parts:
            os.write(output, part)
            log.pump(0)


def test_lines_of_programs_are_labelled(
    log: LabelledLog, capfd: pytest.CaptureFixture[str]
) -> None:
    write(log, "web", b"one\ntw", b"o\n\x1b[31mred\x1b[0m\nlast")
    write(log, "worker", b"caf\xc3\xa9 \xff\n")
    assert log.last_lines("web") == ["one", "two", "red", "last"]
    log.close()
    out = capfd.readouterr().out.splitlines()
    assert out[:4] == [f"web      | {line}" for line in ("one", "two", "red", "last")]
    assert out[4].startswith("worker   | caf\u00e9 ")


def test_colours_are_kept_for_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    log = LabelledLog(is_coloured=True)
    write(log, "web", b"\x1b[31mred\x1b[0m\n")
    log.close()
    assert capfd.readouterr().out == "\x1b[36mweb      |\x1b[0m \x1b[31mred\x1b[0m\n"


def test_restarted_program_has_new_last_lines(log: LabelledLog) -> None:
    write(log, "web", b"before\n")
    assert log.last_lines("web") == ["before"]
    write(log, "web", b"after\n")
    assert log.last_lines("web") == ["after"]


def test_line_without_an_end_is_cut(log: LabelledLog) -> None:
    write(log, "web", *[b"x" * 4096] * (READ_BYTES // 4096 + 1))
    lines = log.last_lines("web")
    assert {len(line) for line in lines} == {MAX_LOG_LINE}
    log.close()


def test_paused_terminal_does_not_hold_up_the_parent() -> None:
    command = [sys.executable, "-c", WRITES]
    with subprocess.Popen(
        command, cwd=BASE_DIR, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stderr is not None
        assert parent.stdout is not None
        assert [parent.stderr.readline() for _ in range(2)] == ["asked\n", "free\n"]
        assert len(parent.stdout.read()) < MAX_UNWRITTEN


def test_reader_that_is_gone_is_reported_once(log: LabelledLog) -> None:
    reading, writing = os.pipe()
    stdout = os.dup(1)
    os.dup2(writing, 1)
    os.close(reading)
    try:
        with pytest.raises(BrokenPipeError):
            log.print_lines("hello")
        log.print_lines("nobody reads it")
        log.close()
    finally:
        os.dup2(stdout, 1)
        os.close(writing)
        os.close(stdout)
