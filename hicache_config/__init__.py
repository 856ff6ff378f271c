"""Exact host sizes for SGLang's HiCache."""
