"""The kinds of variables that accounts of AWS have. Light, as every program reads variables."""

from notifyproject.settings import kinds

TOPIC = r"arn:aws(?:-cn|-us-gov)?:sns:([a-z0-9-]{5,30}):[0-9]{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?"
"""The form of a topic's ARN, with its region."""
REGION = kinds.text(r"[a-z]{2,4}(?:-[a-z]+)+-[0-9]{1,2}", "a region such as eu-west-1")
ACCESS_KEY_ID = kinds.text(
    r"[A-Z0-9]{16,128}", "the ID of an access key, which begins with AKIA or ASIA"
)
SECRET_ACCESS_KEY = kinds.token(min_length=7, is_issued=True)
SESSION_TOKEN = kinds.token(min_length=16, is_issued=True)
TOPICS = kinds.items(
    rf"\s*{TOPIC}(?:\s*,\s*{TOPIC})*\s*", "ARNs of SNS topics, separated by commas"
)
