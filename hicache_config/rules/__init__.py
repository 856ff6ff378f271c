"""What is wrong with a configuration: a registry of small checks, each complete with why, examples and versions.

A rule sees typed arguments, never text; it yields what it saw and the runner stamps code, name and severity.
May import sources and everything below, nothing above.
"""
