"""Bessel functions: log I_v and log K_v for all orders and arguments, their ratios, and log 0F1.

Reading order: `logarithms` has the public functions. `branches` divides the (v, x) plane: outside a
quarter disk it uses `debye`, an expansion with the `coefficients`; inside it `disk`, a series and
a recurrence. `ratios` and `hypergeometric` are built on both.
"""

from .hypergeometric import log_hyp0f1
from .logarithms import log_iv, log_ive, log_kv, log_kve
from .ratios import iv_ratio, iv_ratio_inverse, kv_ratio

__all__ = [
    "iv_ratio",
    "iv_ratio_inverse",
    "kv_ratio",
    "log_hyp0f1",
    "log_iv",
    "log_ive",
    "log_kv",
    "log_kve",
]
