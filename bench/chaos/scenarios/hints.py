"""Hints come again and again, or not at all; nothing of what is sent depends on them."""

from concurrent.futures import ThreadPoolExecutor

from .. import bodies, hinting
from ..evidence import Answer
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..joining import analyze
from ..load import Load
from ..scenario import Scenario
from ..stand import run_installation

PRIORITY = "high"
FINAL_SECONDS = 300.0


def repeated_wakeups(
    *, count: int, rate: float, times: int, at_once: int, workers: int
) -> Findings:
    """Publish each hint many times more, several at once, to several workers."""
    with run_installation() as installation, ThreadPoolExecutor(at_once) as pool:
        worker_programs = [installation.worker(f"worker-{number}") for number in range(workers)]
        installation.start(installation.web(), installation.beat(), *worker_programs)
        published: list[bool] = []

        def republish(answer: Answer) -> None:
            published.append(
                hinting.publish_wakeups(
                    [answer.notification_id or ""], channel="email", priority=PRIORITY
                )
            )

        def repeat(answer: Answer) -> None:
            for _ in range(times):
                pool.submit(republish, answer)

        installation.client.on_accepted = repeat
        load = Load(
            installation.client,
            count=count,
            rate=rate,
            body=lambda number: bodies.mail(number, priority=PRIORITY),
        )
        load.start()
        load.finish()
        pool.shutdown()
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        return make_findings(
            evidence,
            Bound(name="hints published again", value=sum(published), minimum=count * times * 0.99),
            Bound(
                name="copies after an unknown outcome",
                value=len(analyze(evidence).double_unknown),
                maximum=0,
            ),
        )


REPEATED_WAKEUPS = Scenario(
    number=9,
    injects="every hint delivered 10 times more, 5 at once, to 3 workers",
    shows="nothing doubled",
    run=repeated_wakeups,
    full={"count": 2_000, "rate": 20, "times": 10, "at_once": 5, "workers": 3},
    short={"count": 100, "rate": 10, "times": 10, "at_once": 5, "workers": 2},
)
