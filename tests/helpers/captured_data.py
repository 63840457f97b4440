"""Eighty ways in which the data that a function reads can change between two calls.

Each is a script that defines `f`, which doubles its argument, and a line that makes it triple it.
"""

import itertools
import sys
import types
from collections.abc import Callable
from typing import Any

_NUMBERS = itertools.count()
_HEAD = """
import collections, dataclasses, enum, functools, types
import jax, jax.numpy as jnp, numpy as np
from jaxgpu.inputs.fields import number, pytree, size, static
"""
_CALL_BACK = """
def f(x):
    return jax.pure_callback({}, jax.ShapeDtypeStruct((), "float32"), x)
"""

# name: the script, and the line that changes it
KINDS: dict[str, tuple[str, str]] = {
    "global": ("G = 2.0\nf = lambda x: x * G", "G = 3.0"),
    "global array, another": ("G = jnp.float32(2)\nf = lambda x: x * G", "G = jnp.float32(3)"),
    "array written in place": ("G = np.full(1, 2.0)\nf = lambda x: x * G[0]", "G[0] = 3.0"),
    "array of another type": (
        "G = np.array([2], np.int32)\nf = lambda x: x * (2 if G.dtype == np.int32 else 3)",
        "G = np.array([2], np.uint32)",
    ),
    "array of another shape": (
        "G = np.ones((2, 3))\nf = lambda x: x * G.shape[0]",
        "G = np.ones((3, 2))",
    ),
    "closure": (
        "def made():\n    g = 2.0\n    def change():\n        nonlocal g\n        g = 3.0\n"
        "    return (lambda x: x * g), change\nf, change = made()",
        "change()",
    ),
    "list in a closure": (
        "def made(g):\n    return lambda x: x * g[0]\ng = [2.0]\nf = made(g)",
        "g[0] = 3.0",
    ),
    "list": ("G = [2.0]\nf = lambda x: x * G[0]", "G[0] = 3.0"),
    "list that grows": ("G = [1, 1]\nf = lambda x: x * len(G)", "G.append(1)"),
    "order of a list": ("G = [2.0, 3.0]\nf = lambda x: x * G[0]", "G.reverse()"),
    "alias in a tuple": (
        "a, b = np.float32(2), np.float32(3)\nG = (a, b, a)\nf = lambda x: x * G[2]",
        "G = (a, b, b)",
    ),
    "dictionary": ("G = {'k': 2.0}\nf = lambda x: x * G['k']", "G['k'] = 3.0"),
    "nested dictionaries": (
        "G = {'a': {'b': [{'c': 2.0}]}}\nf = lambda x: x * G['a']['b'][0]['c']",
        "G['a']['b'][0]['c'] = 3.0",
    ),
    "default dictionary": (
        "G = collections.defaultdict(lambda: 2.0)\nf = lambda x: x * G.get('k', 2.0)",
        "G['k'] = 3.0",
    ),
    "set": ("G = {1, 2}\nf = lambda x: x * len(G)", "G.add(3)"),
    "deque": ("G = collections.deque([2.0])\nf = lambda x: x * G[0]", "G[0] = 3.0"),
    "namespace": ("G = types.SimpleNamespace(k=2.0)\nf = lambda x: x * G.k", "G.k = 3.0"),
    "attribute of a module": (
        "m = types.ModuleType('m')\nm.k = 2.0\nf = lambda x: x * m.k",
        "m.k = 3.0",
    ),
    "module within a module": (
        "m = types.ModuleType('m')\nm.n = types.ModuleType('n')\nm.n.k = 2.0\n"
        "f = lambda x: x * m.n.k",
        "m.n.k = 3.0",
    ),
    "global of an imported function": (
        "m = types.ModuleType('m')\nexec('K = 2.0\\ndef g(x):\\n    return x * K', vars(m))\n"
        "g = m.g\nf = lambda x: g(x)",
        "m.K = 3.0",
    ),
    "function of a module": (
        "m = types.ModuleType('m')\nm.g = lambda x: 2.0 * x\nf = lambda x: m.g(x)",
        "m.g = lambda x: 3.0 * x",
    ),
    "module imported within": (
        "import sys\nm = sys.modules['within'] = types.ModuleType('within')\nm.k = 2.0\n"
        "def f(x):\n    from within import k\n    return x * k",
        "m.k = 3.0",
    ),
    "constant of a class": ("class C:\n    k = 2.0\nf = lambda x: x * C.k", "C.k = 3.0"),
    "constant of a base": (
        "class B:\n    k = 2.0\nclass C(B):\n    pass\nf = lambda x: x * C.k",
        "B.k = 3.0",
    ),
    "constant that hides a base's": (
        "class B:\n    k = 2.0\nclass C(B):\n    pass\nf = lambda x: x * C.k",
        "C.k = 3.0",
    ),
    "constant of a class of the class": (
        "class C:\n    class D:\n        k = 2.0\nf = lambda x: x * C.D.k",
        "C.D.k = 3.0",
    ),
    "attribute of a dataclass": (
        "@dataclasses.dataclass(frozen=True)\nclass C:\n    n: int = 1\nC.k = 2.0\nc = C()\n"
        "f = lambda x: x * c.k",
        "C.k = 3.0",
    ),
    "attribute of an object of a dataclass": (
        "@dataclasses.dataclass\nclass C:\n    n: int = 1\nc = C()\nc.k = 2.0\n"
        "f = lambda x: x * c.k",
        "c.k = 3.0",
    ),
    "field of a dataclass": (
        "@dataclasses.dataclass\nclass C:\n    k: float = 2.0\nc = C()\nf = lambda x: x * c.k",
        "c.k = 3.0",
    ),
    "constant of a tree": (
        "@pytree\nclass C:\n    n: object = number(default=1.0)\n    def step(self, x):\n"
        "        return x * self.k\nC.k = 2.0\nc = C()\nf = lambda x: c.step(x)",
        "C.k = 3.0",
    ),
    "attribute of a member of an enumeration": (
        "class E(enum.Enum):\n    A = 1\nE.A.k = 2.0\nf = lambda x: x * E.A.k",
        "E.A.k = 3.0",
    ),
    "property of an enumeration": (
        "K = 2.0\nclass E(enum.IntEnum):\n    A = 1\n    @property\n    def k(self):\n"
        "        return K\nf = lambda x: x * E.A.k",
        "K = 3.0",
    ),
    "global of a wrapper": (
        "K = 2.0\ndef g(x):\n    return x\n@functools.wraps(g)\ndef f(x):\n    return K * g(x)",
        "K = 3.0",
    ),
    "global of a wrapper of a library's": (
        "K = 2.0\n@functools.wraps(jnp.positive)\ndef f(x):\n    return K * jnp.positive(x)",
        "K = 3.0",
    ),
    "what a wrapper wraps": (
        "K = 2.0\ndef twice(g):\n    @functools.wraps(g)\n    def w(x):\n        return g(x)\n"
        "    return w\n@twice\ndef f(x):\n    return K * x",
        "K = 3.0",
    ),
    "static method": (
        "class C:\n    @staticmethod\n    def g(x):\n        return 2.0 * x\nf = lambda x: C.g(x)",
        "C.g = staticmethod(lambda x: 3.0 * x)",
    ),
    "global of a static method": (
        "K = 2.0\nclass C:\n    @staticmethod\n    def g(x):\n        return K * x\n"
        "f = lambda x: C().g(x)",
        "K = 3.0",
    ),
    "class method": (
        "class C:\n    k = 2.0\n    @classmethod\n    def g(cls, x):\n        return cls.k * x\n"
        "f = lambda x: C.g(x)",
        "C.k = 3.0",
    ),
    "method reached by attribute": (
        "class C:\n    def g(self, x):\n        return 2.0 * x\nc = C()\nf = lambda x: c.g(x)",
        "C.g = lambda self, x: 3.0 * x",
    ),
    "method reached by name": (
        "class C:\n    def g(self, x):\n        return self.h(x)\n    def h(self, x):\n"
        "        return 2.0 * x\nc = C()\nf = lambda x: getattr(c, 'g')(x)",
        "C.h = lambda self, x: 3.0 * x",
    ),
    "inherited method": (
        "class B:\n    def g(self, x):\n        return 2.0 * x\nclass C(B):\n    pass\nc = C()\n"
        "f = lambda x: c.g(x)",
        "B.g = lambda self, x: 3.0 * x",
    ),
    "method of a metaclass": (
        "class M(type):\n    def g(cls, x):\n        return 2.0 * x\nclass C(metaclass=M):\n"
        "    pass\nf = lambda x: C.g(x)",
        "M.g = lambda cls, x: 3.0 * x",
    ),
    "bound method": (
        "class C:\n    k = 2.0\n    def g(self, x):\n        return self.k * x\nf = C().g",
        "f.__self__.k = 3.0",
    ),
    "property": (
        "class C:\n    k = 2.0\n    @property\n    def p(self):\n        return self.k\nc = C()\n"
        "f = lambda x: x * c.p",
        "C.p = property(lambda self: 3.0)",
    ),
    "global of a property": (
        "K = 2.0\nclass C:\n    @property\n    def p(self):\n        return K\nc = C()\n"
        "f = lambda x: x * c.p",
        "K = 3.0",
    ),
    "slots": (
        "class C:\n    __slots__ = ('k',)\nc = C()\nc.k = 2.0\nf = lambda x: x * c.k",
        "c.k = 3.0",
    ),
    "class of an object": (
        "class C:\n    k = 2.0\nclass D:\n    k = 3.0\nc = C()\nf = lambda x: x * c.k",
        "c.__class__ = D",
    ),
    "attribute of an object": (
        "class C:\n    pass\nc = C()\nc.k = 2.0\nf = lambda x: x * c.k",
        "c.k = 3.0",
    ),
    "attribute that is made when asked for": (
        "K = 2.0\nclass C:\n    def __getattr__(self, name):\n        return K\nc = C()\n"
        "f = lambda x: x * c.anything",
        "K = 3.0",
    ),
    "object that is called": (
        "class C:\n    k = 2.0\n    def __call__(self, x):\n        return x * self.k\nf = C()",
        "f.k = 3.0",
    ),
    "operator of a class": (
        "class C:\n    def __matmul__(self, x):\n        return 2.0 * x\nc = C()\n"
        "f = lambda x: c @ x",
        "C.__matmul__ = lambda self, x: 3.0 * x",
    ),
    "subclass of a float": (
        "class F(float):\n    pass\nK = F(1.0)\nK.k = 2.0\nf = lambda x: x * K.k",
        "K.k = 3.0",
    ),
    "subclass of a dictionary": (
        "class D(dict):\n    pass\nd = D(k=2.0)\nf = lambda x: x * d['k']",
        "d['k'] = 3.0",
    ),
    "named tuple": (
        "T = collections.namedtuple('T', 'k')\nt = T(2.0)\nf = lambda x: x * t.k",
        "t = T(3.0)",
    ),
    "attribute of a function": (
        "def g():\n    pass\ng.k = 2.0\nf = lambda x: x * g.k",
        "g.k = 3.0",
    ),
    "code of a function": (
        "def g(x):\n    return 2.0 * x\nf = lambda x: g(x)",
        "g.__code__ = (lambda x: 3.0 * x).__code__",
    ),
    "default argument": (
        "def g(x, k=2.0):\n    return k * x\nf = lambda x: g(x)",
        "g.__defaults__ = (3.0,)",
    ),
    "default of a keyword": (
        "def g(x, *, k=2.0):\n    return k * x\nf = lambda x: g(x)",
        "g.__kwdefaults__ = {'k': 3.0}",
    ),
    "function defined again": (
        "def g(x):\n    return 2.0 * x\nf = lambda x: g(x)",
        "def g(x):\n    return 3.0 * x",
    ),
    "function in a list": (
        "G = [lambda x: 2.0 * x]\nf = lambda x: G[0](x)",
        "G[0] = lambda x: 3.0 * x",
    ),
    "nested function": (
        "K = 2.0\ndef f(x):\n    def g(y):\n        return [K * z for z in [y]][0]\n"
        "    return g(x)",
        "K = 3.0",
    ),
    "generated function": (
        "space = {'K': 2.0}\nexec('def g(x):\\n    return K * x', space)\ng = space['g']\n"
        "f = lambda x: g(x)",
        "space['K'] = 3.0",
    ),
    "text that is run": (
        "K = 2.0\ndef f(x):\n    space = {'x': x}\n    exec('y = K * x', globals(), space)\n"
        "    return space['y']",
        "K = 3.0",
    ),
    "globals by name": ("K = 2.0\nf = lambda x: x * globals()['K']", "K = 3.0"),
    "partial": (
        "def g(k, x):\n    return k['a'] * x\nk = {'a': 2.0}\nf = functools.partial(g, k)",
        "k['a'] = 3.0",
    ),
    "cached function": (
        "K = [2.0]\n@functools.cache\ndef g(n):\n    return K[n]\nf = lambda x: x * g(0)",
        "K[0] = 3.0\ng.cache_clear()",
    ),
    "generator": ("G = iter([2.0, 3.0])\nf = lambda x: x * K\nK = next(G)", "K = next(G)"),
    "environment": (
        "import os\nos.environ['JAXGPU_K'] = '2'\nf = lambda x: x * float(os.environ['JAXGPU_K'])",
        "os.environ['JAXGPU_K'] = '3'",
    ),
    "file": (
        "import pathlib, tempfile\nname = pathlib.Path(tempfile.mkdtemp(), 'k')\n"
        "name.write_text('2')\n"
        "def f(x):\n    with open(name) as file:\n        return x * float(file.read())",
        "name.write_text('3')",
    ),
    "rule of custom_vjp": (
        "K = 2.0\n@jax.custom_vjp\ndef g(x):\n    return x\n"
        "g.defvjp(lambda x: (x, None), lambda _, t: (K * t,))\nf = lambda x: x * jax.grad(g)(x)",
        "K = 3.0",
    ),
    "rule of custom_jvp": (
        "K = 2.0\n@jax.custom_jvp\ndef g(x):\n    return x\n@g.defjvp\ndef _(p, t):\n"
        "    return p[0], K * t[0]\nf = lambda x: x * jax.grad(g)(x)",
        "K = 3.0",
    ),
    "rule that is given later": (
        "@jax.custom_vjp\ndef g(x):\n    return x\n"
        "g.defvjp(lambda x: (x, None), lambda _, t: (2 * t,))\nf = lambda x: x * jax.grad(g)(x)",
        "g.defvjp(lambda x: (x, None), lambda _, t: (3 * t,))",
    ),
    "function of jit": (
        "K = 2.0\n@jax.jit\ndef g(x):\n    return K * x\nf = lambda x: g(x)",
        "K = 3.0",
    ),
    "body of a loop": (
        "K = 2.0\ndef body(_, x):\n    return K * x\n"
        "f = lambda x: jax.lax.fori_loop(0, 1, body, x)",
        "K = 3.0",
    ),
    "branch": (
        "K = 2.0\ndef yes(x):\n    return K * x\n"
        "f = lambda x: jax.lax.cond(x > -1, yes, lambda x: x, x)",
        "K = 3.0",
    ),
    "body that is checkpointed": (
        "K = 2.0\n@jax.checkpoint\ndef g(x):\n    return K * x\nf = lambda x: g(x)",
        "K = 3.0",
    ),
    "call back and its dictionary": (
        "K = {'k': 2.0}\ndef host(x):\n    return np.float32(x * K['k'])"
        + _CALL_BACK.format("host"),
        "K['k'] = 3.0",
    ),
    "call back and its object": (
        "class C:\n    k = 2.0\n    def g(self, x):\n        return np.float32(x * self.k)\nc = C()"
        + _CALL_BACK.format("c.g"),
        "c.k = 3.0",
    ),
    "call back and its nested function": (
        "K = 2.0\ndef host(x):\n    g = lambda y: K * y\n    return np.float32(g(x))"
        + _CALL_BACK.format("host"),
        "K = 3.0",
    ),
    "call back and its closure": (
        "def made(k):\n    return lambda x: np.float32(x * k[0])\nk = [2.0]\nhost = made(k)"
        + _CALL_BACK.format("host"),
        "k[0] = 3.0",
    ),
    "another call back": (
        "def host(x):\n    return np.float32(2 * x)" + _CALL_BACK.format("host"),
        "def host(x):\n    return np.float32(3 * x)",
    ),
    "metadata of a flax module": (
        "from flax import linen\nclass N(linen.Module):\n    n: int = 1\n"
        "    def __call__(self, x):\n"
        "        return x * self.k\nN.k = 2.0\nn = N()\nf = lambda x: n.apply({}, x)",
        "N.k = 3.0",
    ),
    "schedule of optax": (
        "import optax\nK = [2.0]\nadam = optax.sgd(lambda _: -K[0])\n"
        "f = lambda x: adam.update(x, adam.init(x))[0]",
        "K[0] = 3.0",
    ),
}


def make_change(kind: str) -> tuple[Callable[[Any], Any], Callable[[], None]]:
    """Return a function that returns the current `f`, and one that changes it."""
    before, after = KINDS[kind]
    module = types.ModuleType(f"script_{next(_NUMBERS)}")
    sys.modules[module.__name__] = module  # dataclasses look up their module here
    exec(_HEAD + before, vars(module))
    return (lambda: module.f), (lambda: exec(after, vars(module)))
