"""The clients of inbox streams in the fault scenarios, and their log."""

from io import StringIO

from bench.chaos import stream_clients


def test_event_that_arrives_in_pieces_counts_once() -> None:
    log = StringIO()
    client = stream_clients._Client("127.0.0.1", 1, "token", log)
    event = b'id: 0123456789abcdef01234567\ndata: {"subject":"sent 7 99500"}\n\n'
    for piece in (event[:40], event[40:70], event[70:] + event[:10]):
        client._receive(piece)
    lines = log.getvalue().splitlines()
    assert [line.split()[0::2] for line in lines] == [["event", "7"]]
    assert client._last_id == b"0123456789abcdef01234567"


def test_log_tells_openings_and_events() -> None:
    subject = stream_clients.subject(7, at=99.5)
    found = stream_clients.SUBJECT.search(f'"subject":"{subject}"'.encode())
    assert found is not None
    event = f"event 100.000 {found[1].decode()} {found[2].decode()}"
    lines = ["open 90.0", "open 91.0", "end 95.0", "refused 96.0 503", event, event]
    log = stream_clients.read_log(lines)
    assert (log.open_count, log.opened, log.received) == (1, [90.0, 91.0], {7})
