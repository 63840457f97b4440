"""MuJoCo's soft constraints: contacts, limits, friction loss and equalities.

Read `impedance` first (softness of a row), then `rows` and `contacts` (the constraint rows),
`cones` (friction), `compliance` (a different contact model), `problem` (the constrained
accelerations), and `factor`.
"""

from .contacts import Contacts

__all__ = ["Contacts"]
