"""The IP address of a client behind proxies."""

from notifyproject.platform.client_ip import client_ip
from tests.support.tables import each_case


@each_case(
    "forwarded, proxies, address",
    [
        ("", 0, "192.0.2.1"),
        ("", 1, "192.0.2.1"),
        ("203.0.113.9", 0, "192.0.2.1"),
        ("203.0.113.9", 1, "203.0.113.9"),
        ("10.0.0.1, 203.0.113.9", 1, "203.0.113.9"),
        ("10.0.0.1, 203.0.113.9, 10.1.1.1", 2, "203.0.113.9"),
        ("203.0.113.9", 3, "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", 1, "2001:db8:1:2::"),
        ("::ffff:203.0.113.9", 1, "203.0.113.9"),
        ("nonsense", 1, "unknown"),
        (",", 1, "unknown"),
    ],
)
def test_client_ip_comes_from_the_trusted_proxy(forwarded: str, proxies: int, address: str) -> None:
    meta = {"REMOTE_ADDR": "192.0.2.1", "HTTP_X_FORWARDED_FOR": forwarded}
    assert client_ip(meta, proxies=proxies) == address
