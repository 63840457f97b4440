"""Forces that keep bodies apart, together and within limits: MuJoCo's soft constraints.

Read `impedance` first (how soft a row is), then `rows` and `contacts` (which rows there are),
`cones` (friction), `compliant` (contacts of another kind), `problem` (the accelerations that they
allow), and `factor`.
"""

from .contacts import Contacts

__all__ = ["Contacts"]
