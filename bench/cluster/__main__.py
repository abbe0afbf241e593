"""``make cluster``: build the cluster, print its map, and run it until Ctrl-C."""

import argparse
import signal
import socket
import sys
import time
from contextlib import suppress

from notifyproject.stack import bytecode
from notifyproject.stack.servers import HOST

from . import plan
from .cluster import URL, run_cluster
from .network import missing, remove_leftovers


def main() -> int:
    """Run until SIGINT or SIGTERM; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="port of the console on loopback")
    arguments = parser.parse_args()
    if problem := missing():
        print(problem, file=sys.stderr)
        return 1
    for left in remove_leftovers():
        print(f"removed {left}, which an earlier run left", flush=True)
    bytecode.enable_cache()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    started = time.monotonic()

    def log_progress(text: str) -> None:
        print(f"{time.monotonic() - started:5.1f} s  {text}", flush=True)

    # The socket stays on the machine's own loopback, although the proxy runs on another host.
    with (
        suppress(KeyboardInterrupt),
        socket.create_server((HOST, arguments.port)) as console,
        run_cluster(console=console, log_progress=log_progress) as cluster,
    ):
        process_ids = {name: program.pid for name, program in cluster.all_programs.items()}
        print(f"\n{plan.network_map(cluster.network.namespaces, process_ids=process_ids)}\n")
        print(f"API and console   http://{HOST}:{arguments.port}/ (inside: {URL})")
        print(f"API key           {cluster.client.key}")
        print(f"data and logs     {cluster.folder}")
        namespace = cluster.network.namespaces["edge"]
        print(f"a host from here  ip netns exec {namespace} ip address")
        print("Ctrl-C removes everything.", flush=True)
        while True:
            cluster.supervise(1)
    print("removed everything")
    return 0


def _stop(_number: int, _frame: object) -> None:
    # A second Ctrl-C must not interrupt the removal.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
