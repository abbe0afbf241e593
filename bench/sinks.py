"""Sinks for mail, written in C so that they are never the bottleneck.

nginx stands in for SendGrid, smtp-sink (of Postfix) for a mail server. ``make bench-servers``
unpacks both from Debian's packages; installed programs take precedence.
"""

import os
import shutil
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from notifyproject.settings.environment import DATA_DIR
from notifyproject.stack import servers
from notifyproject.stack.servers import HOST, Server

UNPACKED = DATA_DIR / "debian"
LIBRARIES = ("usr/lib/postfix", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
BACKLOG = 256

NGINX = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections 1024; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_body_buffer_size 256k;
    keepalive_requests 100000000;
    keepalive_timeout 600s;
    log_format arrival '$request_id $msec';
    access_log off;
    server {{
        listen {host}:{port} backlog={backlog};
        location / {{
            add_header X-Message-Id $request_id always;
            return 202;
        }}
        location /timed/ {{
            access_log {folder}/arrivals.log arrival;
            add_header X-Message-Id $request_id always;
            return 202;
        }}
        location = /count {{ stub_status; }}
    }}
}}
"""


@dataclass(frozen=True, kw_only=True)
class HTTPSink:
    """nginx as SendGrid: answers every request with a 202 and an X-Message-Id."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        """The URL of the sink, which logs the arrival times of requests below ``/timed``."""
        return f"http://{HOST}:{self.port}"

    def server(self) -> Server:
        """Write nginx's configuration; return the server, not started."""
        self.folder.mkdir(parents=True, exist_ok=True)
        configuration = self.folder / "nginx.conf"
        text = NGINX.format(folder=self.folder, host=HOST, port=self.port, backlog=BACKLOG)
        configuration.write_text(text)
        return Server(
            name="nginx",
            command=[*_command("nginx"), "-p", str(self.folder), "-c", str(configuration)],
            data_dir=self.folder,
            port=self.port,
            is_ready=lambda: not servers.is_free(self.port),
        )

    def request_count(self) -> int:
        """Return nginx's count of requests, which includes the requests of this method."""
        with urllib.request.urlopen(f"{self.url}/count", timeout=5) as answer:
            return int(answer.read().decode().splitlines()[2].split()[2])

    def arrivals(self) -> dict[str, float]:
        """Return the arrival times of requests below ``/timed``, in Unix time by message ID."""
        lines = (self.folder / "arrivals.log").read_text().splitlines()
        return {message_id: float(at) for message_id, at in (line.split() for line in lines)}


def smtp_sink(*, folder: Path, port: int) -> Server:
    """Return smtp-sink, not started, which accepts and discards every mail."""
    unprivileged = ["-u", "nobody"] if os.geteuid() == 0 else []
    return Server(
        name="smtp-sink",
        command=[*_command("smtp-sink"), *unprivileged, f"{HOST}:{port}", str(BACKLOG)],
        data_dir=folder,
        port=port,
        is_ready=lambda: not servers.is_free(port),
    )


def _command(name: str) -> list[str]:
    installed = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if installed:
        return [installed]
    unpacked = UNPACKED / "usr/sbin" / name
    if not unpacked.exists():
        raise servers.MissingServerError(f"There is no {name}: run `make bench-servers`.")
    libraries = ":".join(str(UNPACKED / folder) for folder in LIBRARIES)
    return ["/usr/bin/env", f"LD_LIBRARY_PATH={libraries}", str(unpacked)]
