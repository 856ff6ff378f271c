"""Arithmetic and values: units, pages, capacity, pools, resolve, agree, plan.

The floor of the house. It uses the standard library only, does no I/O, reads no clock and no environment,
and raises nothing for a person's mistake: what is wrong comes back as findings. It must not import any
other package of the project.
"""
