"""The limit of open files, of which each connection is one."""

import resource

OTHER_FILES = 256
"""Open files that are no clients: connections to servers, libraries, logs."""


def raise_limit() -> int:
    """Have as many open files allowed as can be; return how many may be clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(soft, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - OTHER_FILES
