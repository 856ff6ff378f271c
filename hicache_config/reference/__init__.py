"""Schemas and rules to documentation: JSON Schemas, pages of arguments, rules and model families.

Everything here is generated from the models and the rules' metadata; a check fails when a committed copy is stale.
May import rules, reports and everything below, nothing above.
"""
