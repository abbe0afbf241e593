"""Rooms of Slack, Teams, and Discord, and a receiver of signed webhooks."""
