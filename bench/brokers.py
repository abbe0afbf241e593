"""Valkey and RabbitMQ as brokers, in alternating rounds: drain rate, CPU time, and latency.

``python -m bench.brokers BENCH BROKER_PID COUNT SECONDS`` measures the broker of its environment
and prints the result as JSON.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import django

from . import sinks
from .environment import Bench, run_program
from .figures import Figure, Measure, Progress, at_least, compare, run_rounds
from .rabbitmq import RabbitMQ

UNITS = {"rate": "/s", "cpu": "CPU µs", "broker_cpu": "CPU µs", "p50": "ms", "p99": "ms"}
LABELS = {
    "rate": "drain {count:,} emails on RabbitMQ; floor: on Valkey",
    "cpu": "… CPU of the workers and mongod per email",
    "broker_cpu": "… CPU of the broker per email",
    "p50": "POST → provider at 50/s for {seconds} s, p50",
    "p99": "… p99",
}


def measure_brokers(
    bench: Bench, *, count: int, rounds: int, seconds: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure the service on both brokers; the floor of each figure is Valkey's."""
    with ExitStack() as stack:
        rabbitmq = RabbitMQ(folder=bench.fresh_folder("rabbitmq"))
        stack.callback(rabbitmq.stop)
        rabbitmq.start()
        runs = {
            "valkey": partial(_run, bench, bench.valkey_pid, "", count=count, seconds=seconds),
            "rabbitmq": partial(
                _run, bench, rabbitmq.pid, rabbitmq.url, count=count, seconds=seconds
            ),
        }
        results = run_rounds(runs, rounds=rounds, log_progress=log_progress)
    for name, unit in UNITS.items():
        values = {broker: [one[name] for one in found] for broker, found in results.items()}
        yield compare(
            ours=values["rabbitmq"],
            floor=values["valkey"],
            key=f"brokers {name}",
            label=LABELS[name].format(count=count, seconds=seconds),
            unit=unit,
            goals=(at_least(0.7, Measure.FLOOR),) if name == "rate" else (),
            note="ours: RabbitMQ with quorum queues, one node; floor: Valkey",
        )


def _run(bench: Bench, broker_pid: int, url: str, *, count: int, seconds: int) -> dict[str, float]:
    # An own process, because Celery has one broker for the life of a process.
    fields = asdict(bench) | {"folder": str(bench.folder), "http": None}
    fields["http"] = {"folder": str(bench.http.folder), "port": bench.http.port}
    arguments = (json.dumps(fields), broker_pid, count, seconds)
    with bench.database("bench_brokers"):
        return run_program(bench, "brokers", *arguments, environment={"BROKER_URL": url})


def main() -> None:
    """Measure the drain and the latency, and print them as JSON."""
    django.setup()
    from . import draining, posting
    from .processes import cpu_seconds

    fields: dict[str, Any] = json.loads(sys.argv[1])
    http = sinks.HTTPSink(folder=Path(fields["http"]["folder"]), port=fields["http"]["port"])
    bench = Bench(**{**fields, "folder": Path(fields["folder"]), "http": http})
    broker_pid, count, seconds = map(int, sys.argv[2:])
    before = cpu_seconds(broker_pid)
    result = draining.drain_with_service(bench, count=count, provider="sendgrid")
    broker_cpu = (cpu_seconds(broker_pid) - before) / count * 1e6
    with bench.database(f"bench_brokers_{os.getpid()}"):
        latency = posting.measure_latency(bench, seconds=seconds, log_progress=lambda _: None)
        p50, p99 = (figure.ours for figure in latency)
    found = {"rate": result.rate, "cpu": result.cpu, "broker_cpu": broker_cpu}
    print(json.dumps({**found, "p50": p50, "p99": p99}))


if __name__ == "__main__":
    main()
