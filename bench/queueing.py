"""A queueing simulation of many workers and cells, fed with measured service times.

``python -m bench.queueing WORKER MONGOD PROVIDER`` prints a table; the arguments are the CPU
microseconds of one mail in a worker and in mongod, and the provider's milliseconds.

Assumptions:

- A worker process has a core of its own, and uses at most that one.
- A cell is a replica set whose primary has MONGOD_CORES cores. The CPU time of a mail in mongod
  doesn't depend on the load: no lock contention, a disk that is fast enough, and secondaries on
  other machines. A mail belongs to the cell of its recipient, at random.
- There is always due mail. Mails go in groups, as the engine settles them; half of the CPU time of
  each program is needed before the request, and half after it.
- Service times of a mail are exponential, and the provider's latency is spread by a fifth. The
  provider and the broker have no limit. A worker has ``window`` requests in flight.
- Failures, retries, receipts, callbacks, and the console's reads aren't simulated.
"""

import heapq
import random
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

SEED = 20_251
WARM_UP, MEASURED = 1.0, 3.0
"""Simulated seconds, before and during the count."""
MAX_GROUP = 32
"""Mails that are started and settled together."""
WINDOW = 512
MONGOD_CORES = 8
SPREAD = 0.2
WORKERS, CELLS = (1, 2, 4, 8, 16, 32, 64, 100), (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTimes:
    """Seconds that one mail needs: CPU time of programs, and the provider's latency."""

    worker: float
    mongod: float
    shared: float
    """CPU time of all programs but the workers if they share one machine."""
    provider: float


@dataclass(slots=True)
class Station:
    """Servers with one line. A job holds a server until it releases it."""

    servers: int
    busy_seconds: float = 0.0
    _waiting: deque[Callable[[], None]] = field(default_factory=deque)
    _busy: int = 0

    def acquire(self, start: Callable[[], None]) -> None:
        """Run ``start`` when a server is free."""
        if self._busy < self.servers:
            self._busy += 1
            start()
        else:
            self._waiting.append(start)

    def release(self) -> None:
        """Free a server, or give it to the next job."""
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._busy -= 1


class Simulation:
    """Events in the order of their simulated time."""

    def __init__(self, *, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after some simulated seconds."""
        self._number += 1
        heapq.heappush(self._events, (self.now + seconds, self._number, call))

    def serve(
        self, stations: Sequence[Station], *, mean: float, size: int, then: Callable[[], None]
    ) -> None:
        """Hold one server of each station, in this order, for the time of ``size`` mails."""

        def end() -> None:
            for station in reversed(stations):
                station.release()
            then()

        def start() -> None:
            seconds = self.random.gammavariate(size, mean)
            for station in stations:
                station.busy_seconds += seconds
            self.after(seconds, end)

        def acquire(position: int) -> None:
            if position == len(stations):
                start()
            else:
                stations[position].acquire(lambda: acquire(position + 1))

        acquire(0)

    def run(self, *, until: float) -> None:
        """Run all events before an instant."""
        while self._events and self._events[0][0] < until:
            self.now, _, call = heapq.heappop(self._events)
            call()
        self.now = until


@dataclass(frozen=True, slots=True)
class Simulated:
    """The result: mails per second, and the share of its capacity that each program uses."""

    rate: float
    worker_use: float
    mongod_use: float


def one_machine(times: ServiceTimes, *, workers: int, cores: int, window: int) -> float:
    """Return the mails per second if all programs share the cores of one machine."""
    machine = Station(cores)
    found = _simulate(
        times.worker,
        times.shared,
        times.provider,
        processes=[[Station(1), machine] for _ in range(workers)],
        stores=[[machine]],
        window=window,
    )
    return found.rate


def many_machines(
    times: ServiceTimes, *, workers: int, cells: int, window: int = WINDOW
) -> Simulated:
    """Return the mails per second of workers with a core each, and cells of their own."""
    return _simulate(
        times.worker,
        times.mongod,
        times.provider,
        processes=[[Station(1)] for _ in range(workers)],
        stores=[[Station(MONGOD_CORES)] for _ in range(cells)],
        window=window,
    )


def _simulate(
    worker: float,
    mongod: float,
    provider: float,
    *,
    processes: Sequence[Sequence[Station]],
    stores: Sequence[Sequence[Station]],
    window: int,
) -> Simulated:
    simulation = Simulation(seed=SEED)
    size = min(MAX_GROUP, max(window // 16, 1))
    sent = 0

    def begin(process: Sequence[Station]) -> None:
        """Send a group, and begin the next one when it is settled."""
        store = simulation.random.choice(stores)
        latency = provider * simulation.random.uniform(1 - SPREAD, 1 + SPREAD)

        def use(stations: Sequence[Station], mean: float, then: Callable[[], None]) -> None:
            simulation.serve(stations, mean=mean / 2, size=size, then=then)

        def settled() -> None:
            nonlocal sent
            if simulation.now >= WARM_UP:
                sent += size
            begin(process)

        def answered() -> None:
            use(process, worker, lambda: use(store, mongod, settled))

        def started() -> None:
            simulation.after(latency, answered)

        use(store, mongod, lambda: use(process, worker, started))

    for process in processes:
        for _ in range(window // size):
            begin(process)
    simulation.run(until=WARM_UP + MEASURED)
    total = WARM_UP + MEASURED
    return Simulated(
        rate=sent / MEASURED,
        worker_use=sum(one[0].busy_seconds for one in processes) / len(processes) / total,
        mongod_use=sum(one[0].busy_seconds for one in stores)
        / sum(one[0].servers for one in stores)
        / total,
    )


def table(times: ServiceTimes) -> str:
    """Return the simulated rates by workers and cells as a Markdown table."""
    header = "| workers | " + " | ".join(f"{cells} cells" for cells in CELLS) + " |"
    lines = [header.replace("1 cells", "1 cell", 1), "|---" + "|---:" * len(CELLS) + "|"]
    for workers in WORKERS:
        found = [many_machines(times, workers=workers, cells=cells) for cells in CELLS]
        cells = (f"{one.rate:,.0f} ({one.mongod_use:.0%})" for one in found)
        lines.append(f"| {workers} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print the table for the service times of the command line."""
    worker, mongod, milliseconds = map(float, sys.argv[1:4])
    times = ServiceTimes(
        worker=worker / 1e6, mongod=mongod / 1e6, shared=0.0, provider=milliseconds / 1e3
    )
    print(table(times))


if __name__ == "__main__":
    main()
