"""``manage.py stack``: the local stack."""

import argparse
from collections.abc import Sequence

from ..supervision.forking import UnsafeForkError
from ..supervision.supervisor import ProgramFailedError
from . import running, servers
from .prerequisites import MissingLibraryError
from .servers import MissingServerError, ServerFailedError

PROBLEMS = (
    running.StackError,
    MissingServerError,
    MissingLibraryError,
    ServerFailedError,
    ProgramFailedError,
    UnsafeForkError,
)


def main(arguments: Sequence[str]) -> str | None:
    """Run the stack, or stop one. Return why that failed, or None."""
    parser = argparse.ArgumentParser(
        prog="manage.py stack", description="Run the whole service on this machine until Ctrl-C."
    )
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--host",
        default=servers.HOST,
        help="where to listen; in a container on 0.0.0.0, to which published ports lead",
    )
    parser.add_argument(
        "--no-examples", action="store_true", help="send no examples at the first start"
    )
    parser.add_argument("--stop", action="store_true", help="stop one in the background")
    options = parser.parse_args(arguments)
    try:
        if options.stop:
            print("Stopped." if running.down() else "No stack is running.")
        else:
            running.up(port=options.port, host=options.host, with_examples=not options.no_examples)
    except PROBLEMS as problem:
        return str(problem)
    return None
