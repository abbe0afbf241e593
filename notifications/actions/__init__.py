"""Retry, resend, cancel, reschedule, and the risk of sending again."""
