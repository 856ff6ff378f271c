"""What the program does, as plain functions: validate, plan, and the public resolve. No click, no printing.

May import everything below; cli and engines build on it. Import from its modules, so that an engine that resolves
pools does not load reports and rules.
"""
