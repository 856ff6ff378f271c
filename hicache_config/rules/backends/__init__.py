"""Settings of the storage backends, a model each, and their part of host memory.

`reading` turns text into `Settings`, `kinds` has the models (built when settings are read), `memory` says what
host memory they take. Nothing here opens a file: text that names one (@path) is read by the caller. May import what
rules import.
"""
