"""What a claim is held to, and how a row of the table is written."""

from dataclasses import dataclass

# What counts as "the same" where the thesis says so of two curves in a graph
# that we cannot measure.
ALIKE = 0.05

# "Near": within a third of the published effect.
NEAR = 1 / 3


@dataclass(frozen=True)
class Row:
    """One line of the table: a claim, or a part of one."""

    claim: str
    subject: str
    published: str
    obtained: str
    holds: bool

    def cells(self):
        """The line's cells."""
        verdict = "holds" if self.holds else "**does not hold**"
        return [self.claim, self.subject, self.published, self.obtained, verdict]


def is_near(obtained, published, effect=None):
    """Whether a number is within a third of the published effect (the number itself unless said)."""
    return abs(obtained - published) <= NEAR * abs(published if effect is None else effect)


def is_alike(one, other):
    """Whether two numbers are the same to within `ALIKE`."""
    return abs(one / other - 1) <= ALIKE


def number(value, digits=3):
    """A number to so many significant digits."""
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"


def interval(value, digits=3):
    """A value with its interval: `0.81 ± 0.02`."""
    return f"{number(value.mean, digits)} ± {number(value.half_width, 2)}"


def percent(share):
    """A share as a difference in percent: `+3.1 %`."""
    return f"{100 * share:+.1f} %"


def span(values, show=number):
    """From the smallest to the largest."""
    return f"{show(min(values))} to {show(max(values))}"
