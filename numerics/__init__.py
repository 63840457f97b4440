"""Special functions and the distributions that rest on them."""

from jaxgpu.numerics.bessel import log_iv as log_iv
from jaxgpu.numerics.bessel import log_ive as log_ive
from jaxgpu.numerics.bessel import log_kv as log_kv
from jaxgpu.numerics.bessel import log_kve as log_kve
from jaxgpu.numerics.bessel_ratio import iv_ratio as iv_ratio
from jaxgpu.numerics.bessel_ratio import iv_ratio_inverse as iv_ratio_inverse
from jaxgpu.numerics.bessel_ratio import kv_ratio as kv_ratio
from jaxgpu.numerics.hypergeometric import log_hyp0f1 as log_hyp0f1
from jaxgpu.numerics.von_mises_fisher import VonMisesFisher as VonMisesFisher
