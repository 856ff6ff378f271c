"""Reports: plain values of what was found and planned, and their printing for people and programs.

May import rules and everything below, nothing above. rich is used in the text reports only.
"""
