"""States, errors, retry rules, times, and content types that all packages share. Pure."""

import zoneinfo

# Python reads the system's rules of time zones first, which may be years old, and one release would
# compute other times on another machine. Without a path, it reads the pinned package, tzdata.
zoneinfo.reset_tzpath(to=())
