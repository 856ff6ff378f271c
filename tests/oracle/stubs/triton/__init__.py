"""Import-only triton: kernels can be defined and never launched. The few helpers that are called at import are real."""

from import_only import stand_in

__version__ = "3.6.0"
stand_in(__name__)


def jit(function=None, **options):
    return function if callable(function) else lambda decorated: decorated


def autotune(*args, **options):
    return lambda decorated: decorated


def heuristics(*args, **options):
    return lambda decorated: decorated


def cdiv(numerator, denominator):
    return (numerator + denominator - 1) // denominator


def next_power_of_2(number):
    return 1 if number <= 1 else 1 << (number - 1).bit_length()


class Config:
    """A tuning entry: keeps what it is given."""

    def __init__(self, kwargs=None, num_warps=4, num_stages=2, **options):
        self.kwargs = kwargs or {}
        self.num_warps = num_warps
        self.num_stages = num_stages


class constexpr:  # the library's own spelling
    def __init__(self, value=None):
        self.value = value


from triton import language  # the stand-in submodule, which needs the names above

language.constexpr = constexpr
