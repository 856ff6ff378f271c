"""The one operation that a CPU server names; sizing never calls it."""


def rotary_embedding(*args, **kwargs):
    raise RuntimeError("the oracle's stand-in for vllm cannot compute: no request may be sent to this server")
