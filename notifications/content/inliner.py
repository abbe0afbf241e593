"""Inlines CSS with a native library, as a program of its own, since the library may crash.

It imports no other module of the service and starts in 60 ms. It reads JSON and writes a line of
JSON per fragment.
"""

import css_inline

INLINER = css_inline.CSSInliner(load_remote_stylesheets=False)
FRAGMENT_INLINER = css_inline.CSSInliner(
    load_remote_stylesheets=False, keep_style_tags=True, remove_inlined_selectors=True
)
"""Keeps the rules that can't be inlined: media queries, ``:hover``, and fonts."""
MAX_MEMORY_BYTES = 40 * 1024 * 1024  # Memory that the program may use on top of its size at startup
MAX_STACK_BYTES = 1024 * 1024  # Stack size: an eighth of that of a service process
MAX_CPU_SECONDS = 0.15  # CPU time for one fragment


def inline_fragment(html: str, css: str) -> str:
    """Return an HTML fragment with a style sheet inlined."""
    return FRAGMENT_INLINER.inline_fragment(html, css).replace("<style></style>", "")


def main() -> None:
    """Inline each fragment within the limits. The process ends at the first failure."""
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
        # The signal's default action ends the process, even in native code.
        signal.setitimer(signal.ITIMER_PROF, MAX_CPU_SECONDS)
        if request["is_layout"]:
            answer = INLINER.inline(html)
        else:
            answer = inline_fragment(html, request["css"])
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
