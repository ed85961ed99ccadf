"""What can go wrong, and what deserves a warning."""


class PadmmError(ValueError):
    """Something that was given is wrong. The text is that of the command ``padmm``; every error here is a ``ValueError``."""


class BudgetError(PadmmError):
    """A privacy budget that is impossible, or does not suffice for what is asked."""


class SchemaError(PadmmError):
    """A schema that contradicts itself, or records that do not fit one."""


class PrivacyWarning(UserWarning):
    """What is done costs privacy that no number in the result accounts for."""


class WorthlessModelWarning(UserWarning):
    """The model is no better than the same answer for everybody."""


class DataBoundsWarning(PrivacyWarning):
    """Bounds or categories were taken from the data: the stated guarantee does not hold."""


class TuningWarning(PrivacyWarning):
    """Several models were trained on the same records: together they spend more than each says."""
