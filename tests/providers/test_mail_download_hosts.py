import ipaddress
import socket
from pathlib import Path
from typing import Any

import pytest

from domain.errors import FailureCode, PermanentError
from notifyproject.platform.egress import addresses_of, is_public
from providers.mail import DownloadError
from tests.support.fakes import socket_server
from tests.support.fakes.file_server import HOST, Files, certificate, files_at, get


def test_untrusted_certificate_gets_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(socket_server.response(200, b"a file"))
    other = certificate(tmp_path, host="other.example.com")
    with files_at(files, other, monkeypatch), pytest.raises(DownloadError, match="certificate"):
        get()
    assert files.requests == []


def resolving_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Resolve every name to these addresses. Return the list of resolved names."""
    resolved: list[str] = []

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        resolved.append(host)
        if not addresses:
            raise socket.gaierror(-2, "Name or service not known")
        return [(0, 1, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return resolved


@pytest.mark.parametrize("hidden", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "fd00:ec2::254"])
@pytest.mark.parametrize("others", [[], ["93.184.215.14"]])
def test_internal_address_is_not_connected_to(
    hidden: str, others: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving_to(monkeypatch, *others, hidden)
    monkeypatch.setattr(socket, "create_connection", pytest.fail)
    with pytest.raises(PermanentError) as error:
        get()
    assert error.value.code is FailureCode.ATTACHMENT_UNAVAILABLE


def test_checked_address_is_the_one_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second lookup might return another address."""
    resolved = resolving_to(monkeypatch, "93.184.215.14", "2606:2800:21f::1", "93.184.215.14")
    tried: list[Any] = []

    def refused(address: Any, **_: Any) -> None:
        tried.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refused)
    with pytest.raises(DownloadError):
        get()
    assert tried == [("93.184.215.14", 443), ("2606:2800:21f::1", 443)]
    assert resolved == [HOST]


def test_unresolved_name_is_temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving_to(monkeypatch)
    with pytest.raises(DownloadError, match="no address"):
        get()
    with pytest.raises(OSError, match="not known"):
        addresses_of(HOST, 443)


@pytest.mark.parametrize(
    "url",
    [
        *("http://files.example.com/x", "https://files.example.com:8443/x", "https://a@b.com/x"),
        *("https:///x", "ftp://files.example.com/x", "https://[::1", "files.example.com/x"),
        *("https://files..example.com/x", f"https://{'x' * 70}.example.com/x"),
    ],
)
def test_invalid_url_is_not_looked_up(url: str) -> None:
    with pytest.raises(PermanentError):
        get(url)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1"),
        *("192.0.2.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "233.252.0.1", "240.0.0.1"),
        *("255.255.255.255", "::", "::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::10.0.0.1"),
        *("64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1", "100::1", "fc00::1"),
        *("fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "ff0e::1", "2001:db8::1"),
        *("2001::a00:1", "2002:a00:1::1", "2002:7f00:1::", "5f00::1"),
    ],
)
def test_address_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"]
)
def test_address_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))
