"""Network namespaces as hosts: one switch, a cable to each, and ways to cut them. Needs root."""

import ctypes
import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from .plan import HOSTS, INTERNET, NETWORK, PREFIX_LENGTH, Host

CLONE_NEWNET = 0x40000000
COMMAND_SECONDS = 20.0
OWNED = re.compile(r"ntfy(\d+)-(\d+)-[a-z0-9-]+")
"""A namespace: process ID and start of the process that made it, and the host."""
FOLDER = re.compile(r"notifyproject-cluster-(\d+)-(\d+)")
NOBODY = "02:00:00:00:00:01"
"""A hardware address that no host has."""
BRIDGE, LINK = "switch", "eth0"


class NetworkError(RuntimeError):
    """A command of iproute2 failed. The message has the command and its error."""


def missing() -> str:
    """Return what this machine lacks for the cluster, as a sentence; empty if nothing."""
    if os.geteuid() or not Path("/proc/self/ns/net").exists():
        return "The cluster needs Linux and root, because it makes network namespaces."
    packages = {"ip": "iproute2", "haproxy": "haproxy"}
    absent = [package for program, package in packages.items() if not shutil.which(program)]
    return f"The cluster needs `apt install {' '.join(absent)}`." if absent else ""


class Network:
    """The hosts' namespaces. Their names have the process that made them."""

    def __init__(self) -> None:
        self.owner = f"{os.getpid()}-{_started_at(os.getpid())}"
        self.namespaces = {host.name: f"ntfy{self.owner}-{host.name}" for host in HOSTS}
        self._outside = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.folder = Path(tempfile.gettempdir(), f"notifyproject-cluster-{self.owner}")

    def create(self) -> None:
        """Create the namespaces and the folder for data and logs. Raises NetworkError."""
        self.folder.mkdir()
        for host in HOSTS:
            _ip("netns", "add", self.namespaces[host.name])
            self._inside(host, "link", "set", "lo", "up")
        address = f"{INTERNET.address}/{PREFIX_LENGTH}"
        self._inside(INTERNET, "link", "add", BRIDGE, "type", "bridge")
        self._inside(INTERNET, "address", "add", address, "dev", BRIDGE)
        self._inside(INTERNET, "link", "set", BRIDGE, "up")
        for host in HOSTS[1:]:
            peer = ("peer", "name", LINK, "netns", self.namespaces[host.name])
            self._inside(INTERNET, "link", "add", host.name, "type", "veth", *peer)
            self._inside(INTERNET, "link", "set", host.name, "master", BRIDGE, "up")
            address = f"{NETWORK}.{host.number}/{PREFIX_LENGTH}"
            self._inside(host, "address", "add", address, "dev", LINK)
            self._inside(host, "link", "set", LINK, "up")

    def enter(self, host: Host) -> None:
        """Move this thread, and the threads and processes that it will start, to a host."""
        with Path("/run/netns", self.namespaces[host.name]).open() as namespace:
            _enter(namespace.fileno())

    def command(self, host: Host, command: Sequence[str]) -> list[str]:
        """Return a command that runs on a host."""
        return ["ip", "netns", "exec", self.namespaces[host.name], *command]

    def cut(self, host: Host) -> None:
        """Cut the cable of a host: packets to it and from it are lost, without an error."""
        self._inside(INTERNET, "link", "set", host.name, "down")

    def repair(self, host: Host) -> None:
        """Connect a host again."""
        self._inside(INTERNET, "link", "set", host.name, "up")

    def separate(self, some: Iterable[Host], others: Iterable[Host]) -> None:
        """Lose all packets between two groups of hosts, without an error."""
        for host, other in _both_ways(some, others):
            entry = (other.address, "lladdr", NOBODY, "nud", "permanent", "dev", _device(host))
            self._inside(host, "neighbour", "replace", *entry)

    def join(self, some: Iterable[Host], others: Iterable[Host]) -> None:
        """End a separation."""
        for host, other in _both_ways(some, others):
            self._inside(host, "neighbour", "delete", other.address, "dev", _device(host))

    def remove(self) -> None:
        """Kill what runs in the namespaces, and remove them and the folder; leave them first."""
        _enter(self._outside)
        os.close(self._outside)
        _remove(self.namespaces.values())
        shutil.rmtree(self.folder, ignore_errors=True)

    def _inside(self, host: Host, *arguments: str) -> None:
        _ip("-n", self.namespaces[host.name], *arguments)


def remove_leftovers() -> list[str]:
    """Remove the namespaces, processes, and folders of clusters whose process is gone.

    Returns the names of the namespaces and folders. Two processes don't remove at the same time.
    """
    lock = os.open(tempfile.gettempdir(), os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _remove_abandoned()
    finally:
        os.close(lock)


def _remove_abandoned() -> list[str]:
    existing = [line.split()[0] for line in _ip("netns", "list").splitlines() if line]
    abandoned = [name for name in existing if (made := OWNED.fullmatch(name)) and _is_gone(made)]
    _remove(abandoned)
    folders = [
        path
        for path in Path(tempfile.gettempdir()).iterdir()
        if (made := FOLDER.fullmatch(path.name)) and _is_gone(made)
    ]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return [*abandoned, *map(str, folders)]


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET):
        raise NetworkError(f"setns: {os.strerror(ctypes.get_errno())}")


def _remove(namespaces: Iterable[str]) -> None:
    for name in namespaces:
        if not Path("/run/netns", name).exists():
            continue
        while process_ids := _ip("netns", "pids", name).split():
            for process_id in map(int, process_ids):
                _kill(process_id)
            time.sleep(0.05)
        _ip("netns", "delete", name)


def _kill(process_id: int) -> None:
    try:
        os.kill(process_id, signal.SIGKILL)
    except ProcessLookupError:
        return
    # A killed child of this process stays in the list until it is awaited.
    try:
        os.waitpid(process_id, 0)
    except ChildProcessError:
        return


def _is_gone(owner: re.Match[str]) -> bool:
    return _started_at(int(owner[1])) != owner[2]


def _started_at(process_id: int) -> str:
    """Return the start of a process in clock ticks, which a reused process ID doesn't share."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def _both_ways(some: Iterable[Host], others: Iterable[Host]) -> list[tuple[Host, Host]]:
    pairs = [(host, other) for host in some for other in others]
    return [*pairs, *((other, host) for host, other in pairs)]


def _device(host: Host) -> str:
    return BRIDGE if host is INTERNET else LINK


def _ip(*arguments: str) -> str:
    try:
        finished = subprocess.run(
            ("ip", *arguments),
            check=True,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        raise NetworkError(f"ip {' '.join(arguments)}: {error.stderr.strip()}") from error
    return finished.stdout
