import pytest

from bench.slow_clients import Kind, SlowClients
from tests.support.clients.raw_http import Answers, get
from tests.support.served_program import Serve, Served

# For the processes, whose database it is.
pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture(scope="module")
def stream(serve: Serve) -> Served:
    """Run a stream process with few connections and a short client time limit."""
    return serve("stream", WEB_CONNECTIONS="500", WEB_CLIENT_SECONDS="3")


def test_half_a_head_is_answered_408(stream: Served) -> None:
    with stream.connect() as client:
        client.sendall(get()[:-3])
        answers = Answers(client)
        answer = answers.next()
        assert (answer.status, answer.problem()["code"]) == (408, "request_timeout")
        assert answers.is_over()


def test_silent_stream_connection_is_closed(stream: Served) -> None:
    with stream.connect() as client:
        assert Answers(client).is_over()


def test_head_may_come_in_pieces(stream: Served) -> None:
    with stream.connect() as client:
        for byte in get():
            client.sendall(bytes([byte]))
        assert Answers(client).next().status == 200


def test_large_head_is_refused(stream: Served) -> None:
    with stream.connect() as client:
        client.sendall(get("/healthz", f"A: {'x' * 100_000}"))
        assert Answers(client).next().status == 431


def test_slow_stream_clients_delay_nobody(stream: Served) -> None:
    kinds = (Kind.SILENT, Kind.HEAD)
    with SlowClients(target=stream.target, kinds=kinds, count=300) as clients:
        for _ in range(5):
            # Beyond the limit a client may be the oldest before it has sent anything.
            assert any(stream.is_healthy() for _ in range(5))
        assert clients.opened > 600
