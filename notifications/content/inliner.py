"""Style sheets into elements: the one place that calls the native library.

As a program it does the same in a process of its own, which may die of it: JSON in, a line of JSON
out for each fragment, in order. It imports nothing else of this service, so it starts in 60 ms.
"""

import css_inline

INLINER = css_inline.CSSInliner(load_remote_stylesheets=False)
MAX_MEMORY_BYTES = 40 * 1024 * 1024
"""Bytes that the program may take on top of what it starts with."""
MAX_STACK_BYTES = 1024 * 1024
"""Bytes of stack: an eighth of what a process of the service has."""
MAX_CPU_SECONDS = 0.15
"""Seconds of processor time for one fragment."""


def inline_fragment(html: str, css: str) -> str:
    """Return a part of a page with a style sheet in its elements."""
    return INLINER.inline_fragment(html, css)


def inline_page(html: str) -> str:
    """Return a page with its own style sheets in its elements."""
    return INLINER.inline(html)


def main() -> None:
    """Inline every fragment of the request within the limits; the process ends where one fails."""
    import json
    import resource
    import signal
    import sys
    from pathlib import Path

    request = json.load(sys.stdin)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    max_bytes = pages * resource.getpagesize() + MAX_MEMORY_BYTES
    for resource_limit, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_STACK, MAX_STACK_BYTES),
        (resource.RLIMIT_AS, max_bytes),
    ):
        resource.setrlimit(resource_limit, (limit, limit))
    for html in request["fragments"]:
        # Its signal's default action ends the process, native code or not.
        signal.setitimer(signal.ITIMER_PROF, MAX_CPU_SECONDS)
        answer = inline_fragment(html, request["css"])
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
