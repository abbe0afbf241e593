"""Which URLs are called back at all, by what is written in them."""

import pytest

from callbacks import endpoints
from callbacks.endpoints import Endpoint, InvalidUrlError


@pytest.mark.parametrize(
    ("url", "target"),
    [
        (
            "https://shop.example.com/hooks?app=1",
            Endpoint(host="shop.example.com", port=443, path="/hooks?app=1"),
        ),
        ("https://shop.example.com", Endpoint(host="shop.example.com", port=443, path="/")),
        (
            "https://SHOP.example.com:8443/é",
            Endpoint(host="shop.example.com", port=8443, path="/%C3%A9"),
        ),
        ("https://shop.example.com:3000/", Endpoint(host="shop.example.com", port=3000, path="/")),
        ("https://1.1.1.1/", Endpoint(host="1.1.1.1", port=443, path="/")),
        ("https://[2606:4700::1111]/", Endpoint(host="2606:4700::1111", port=443, path="/")),
    ],
)
def test_a_url_that_is_called(url: str, target: Endpoint) -> None:
    assert endpoints.parse_url(url, allow_loopback=False) == target


def test_the_host_is_named_with_its_port_unless_it_is_the_usual_one() -> None:
    for url, authority in (
        ("https://shop.example.com/x", "shop.example.com"),
        ("https://shop.example.com:8443/x", "shop.example.com:8443"),
        ("https://[2606:4700::1111]:8443/x", "[2606:4700::1111]:8443"),
    ):
        assert endpoints.parse_url(url, allow_loopback=False).authority == authority


@pytest.mark.parametrize(
    ("url", "code"),
    [
        *(("", "invalid_url"), ("shop.example.com/x", "invalid_url"), ("https://", "invalid_url")),
        ("https://[::1", "invalid_url"),
        ("https://shop.example.com:99999/", "invalid_url"),
        ("https://shop.example.com/a b\n", "invalid_url"),
        ("https://ada:secret@shop.example.com/", "invalid_url"),
        ("https://shop.example.com@10.0.0.1/", "invalid_url"),
        ("https://shop.example.com/#part", "invalid_url"),
        *(("http://shop.example.com/", "not_https"), ("ftp://shop.example.com/", "not_https")),
        *(("file://shop.example.com/x", "not_https"), ("http://127.0.0.1/", "not_https")),
        *((f"https://shop.example.com:{port}/", "port_not_allowed") for port in (22, 25, 80, 444)),
        ("https://shop.example.com:1024/", "port_not_allowed"),
        *(("https://sh_op.example.com/", "invalid_host"), ("https://straße.de/", "invalid_host")),
        ("https://2130706433/", "invalid_host"),
        *(("https://0x7f.1/", "invalid_host"), ("https://10.0.0.0x1/", "invalid_host")),
        ("https://shop..example.com/", "invalid_host"),
        *((f"https://{'x' * 64}.com/", "invalid_host"), ("https://localhost/", "not_public")),
        *(("https://intranet/", "not_public"), ("https://metadata.google.internal/", "not_public")),
        *(("https://127.0.0.1/", "not_public"), ("https://[::1]/", "not_public")),
        *(("https://169.254.169.254/", "not_public"), ("https://10.1.2.3:8443/", "not_public")),
        *(("https://100.64.0.1/", "not_public"), ("https://[::ffff:10.0.0.1]/", "not_public")),
        *(("https://[64:ff9b::a00:1]/", "not_public"), ("https://[fd00:ec2::254]/", "not_public")),
    ],
)
def test_a_url_that_is_not_called(url: str, code: str) -> None:
    with pytest.raises(InvalidUrlError) as problem:
        endpoints.parse_url(url, allow_loopback=False)
    assert problem.value.code == code
    assert not url or url not in str(problem.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000/x", "http://[::1]/", "http://localhost/x"])
def test_a_stack_on_one_machine_may_call_that_machine(url: str) -> None:
    assert endpoints.parse_url(url, allow_loopback=True).is_plain


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/", "http://shop.example.com/", "https://127.0.0.1/", "http://0.0.0.0/"]
)
def test_and_no_other_one(url: str) -> None:
    with pytest.raises(InvalidUrlError):
        endpoints.parse_url(url, allow_loopback=True)
