"""Bytes to a document that knows where each value stands: JSON, YAML, TOML, command lines, shell, manifests, logs.

Nothing in a file is ever executed. May import arguments and below, nothing above.
"""
