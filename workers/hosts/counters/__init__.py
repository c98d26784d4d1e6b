"""Counters of devices on a host: energy, networks, processor, GPU and files.

Packets show what crossed a wire, calls what ranks requested, counters what devices did. A source (`source.Source`) finds its
quantities (`probe`), reads them before the program (`begin`), once a second (`sample`) and after it (`end`). All of them run in a
process of the agent (`recorder`), as the user, read only. `python -m workers.hosts.counters` prints them.

Standard library and Python 3.9 only: this travels with the agent.
"""
