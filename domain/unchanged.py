"""The value of a field that a change leaves as it is."""


class Unchanged:
    """The class of UNCHANGED. None removes a value."""


UNCHANGED = Unchanged()
