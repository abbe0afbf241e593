"""A RabbitMQ node on loopback, from Debian's package: ``make rabbitmq-server`` unpacks it."""

import socket
from contextlib import suppress
from pathlib import Path

import amqp

from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack.servers import HOST, Server, free_port

UNPACKED = BASE_DIR / ".data" / "debian"
START_SECONDS = 120.0
CONNECT_SECONDS = 2.0
DELAY_LEVELS = 28
"""Queues of Celery's delayed delivery."""


class RabbitMQ:
    """A node of its own, with its port mapper. It can be killed, emptied, and restarted."""

    def __init__(self, *, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        erlang, plugins = _programs()
        binaries = next(erlang.glob("erts-*/bin"))
        mapper_port, distribution_port = free_port(), free_port()
        variables = {
            "ROOTDIR": erlang,
            "BINDIR": binaries,
            "EMU": "beam",
            "PROGNAME": "erl",
            "ERL_LIBS": plugins,
            "PATH": f"{erlang}/bin:{binaries}:/usr/bin:/bin",
            # The cookie of the node is stored there.
            "HOME": folder,
            "ERL_EPMD_PORT": mapper_port,
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": f"notify{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": self.port,
            "RABBITMQ_DIST_PORT": distribution_port,
            "RABBITMQ_MNESIA_BASE": folder / "data",
            "RABBITMQ_LOG_BASE": folder / "log",
            "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "plugins",
            "RABBITMQ_CONFIG_FILE": folder / "rabbitmq",
            "RABBITMQ_CONF_ENV_FILE": folder / "environment",
        }
        environment = ["env", *(f"{name}={value}" for name, value in variables.items())]
        self._mapper = Server(
            name="epmd",
            command=[*environment, "epmd", "-port", str(mapper_port), "-address", HOST],
            data_dir=folder / "epmd",
            port=mapper_port,
            is_ready=lambda: _is_listening(mapper_port),
        )
        self._node = Server(
            name="rabbitmq",
            command=[
                *environment,
                f"{binaries}/erlexec",
                "-noinput",
                "-s",
                "rabbit",
                "boot",
                "-boot",
                "start_sasl",
                "+W",
                "w",
                "+P",
                "1048576",
                "+t",
                "5000000",
                "+sbwt",
                "none",
                "+sbwtdcpu",
                "none",
                "+sbwtdio",
                "none",
                "-kernel",
                "inet_dist_use_interface",
                "{127,0,0,1}",
                "-kernel",
                "prevent_overlapping_partitions",
                "false",
                "-syslog",
                "logger",
                "[]",
                "-syslog",
                "syslog_error_logger",
                "false",
            ],
            data_dir=folder,
            port=self.port,
            is_ready=self._is_usable,
        )

    @property
    def url(self) -> str:
        """The broker's URL."""
        return f"amqp://guest:guest@{HOST}:{self.port}//"

    @property
    def pid(self) -> int:
        """The process ID of the node."""
        if self._node.process is None:
            raise RuntimeError("RabbitMQ was not started")
        return self._node.process.pid

    def start(self) -> None:
        """Start the node, and its port mapper if it isn't running."""
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "plugins").write_text("[].\n")
        if self._mapper.process is None:
            self._mapper.start()
        self._node.start(timeout=START_SECONDS)

    def kill(self) -> None:
        """Kill the node, as a power failure would."""
        self._node.kill()

    def stop(self) -> None:
        """Stop the node and its port mapper."""
        self._node.stop()
        self._mapper.stop()

    def empty(self) -> None:
        """Remove all messages that no worker holds, delayed ones too."""
        # The service's modules need its settings, which exist only after the servers started.
        from notifyproject.settings.base import queue_names

        delayed = [f"celery_delayed_{level}" for level in range(DELAY_LEVELS)]
        with self._connect() as connection:
            for name in [*queue_names(), *delayed]:
                # No worker has declared a queue that isn't found. The error closes the channel.
                with suppress(amqp.NotFound):
                    connection.channel().queue_purge(name)

    def _is_usable(self) -> bool:
        try:
            with self._connect():
                return True
        except (OSError, amqp.AMQPError):
            return False

    def _connect(self) -> amqp.Connection:
        return amqp.Connection(
            f"{HOST}:{self.port}",
            connect_timeout=CONNECT_SECONDS,
            read_timeout=CONNECT_SECONDS,
            write_timeout=CONNECT_SECONDS,
        )


def _programs() -> tuple[Path, Path]:
    """Return the folders of Erlang and of RabbitMQ's code, unpacked here or installed."""
    for root in (UNPACKED, Path("/")):
        found = sorted(root.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins"))
        if found:
            return root / "usr/lib/erlang", found[-1]
    raise RuntimeError("There is no RabbitMQ: run `make rabbitmq-server`.")


def _is_listening(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False
