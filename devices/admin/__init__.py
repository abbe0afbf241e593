"""The admin of devices."""

from .pages import DeviceAdmin

__all__ = ["DeviceAdmin"]
