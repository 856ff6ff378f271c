"""Adapters that put a plan into a serving engine; one folder an engine, imported only inside that engine."""
