"""Hints come again and again, or not at all; nothing of what is sent depends on them."""

from concurrent.futures import ThreadPoolExecutor

from .. import bodies, hinting
from ..evidence import Answer
from ..findings import Bound, Findings, conclude
from ..gathering import gather
from ..joining import judge
from ..load import Load
from ..scenario import Scenario
from ..stand import standing

PRIORITY = "high"
FINAL_SECONDS = 300.0


def repeated_hints(*, count: int, rate: float, times: int, at_once: int, workers: int) -> Findings:
    """Publish each hint many times more, several at once, to several workers."""
    with standing() as stand, ThreadPoolExecutor(at_once) as echoes:
        team = [stand.worker(f"worker-{number}") for number in range(workers)]
        stand.start(stand.web(), stand.beat(), *team)
        taken: list[bool] = []

        def again(answer: Answer) -> None:
            taken.append(
                hinting.publish([answer.notification_id or ""], channel="email", priority=PRIORITY)
            )

        def echo(answer: Answer) -> None:
            for _ in range(times):
                echoes.submit(again, answer)

        stand.client.on_accepted = echo
        load = Load(
            stand.client,
            count=count,
            rate=rate,
            body=lambda number: bodies.mail(number, priority=PRIORITY),
        )
        load.start()
        load.finish()
        echoes.shutdown()
        stand.wait_final(timeout=FINAL_SECONDS)
        evidence = gather(stand)
        return conclude(
            evidence,
            Bound(name="hints published again", value=sum(taken), least=count * times * 0.99),
            Bound(
                name="copies after an unknown outcome",
                value=len(judge(evidence).double_unknown),
                most=0,
            ),
        )


REPEATED_HINTS = Scenario(
    number=9,
    injects="every hint delivered 10 times more, 5 at once, to 3 workers",
    shows="nothing doubled",
    run=repeated_hints,
    full={"count": 2_000, "rate": 20, "times": 10, "at_once": 5, "workers": 3},
    short={"count": 100, "rate": 10, "times": 10, "at_once": 5, "workers": 2},
)
