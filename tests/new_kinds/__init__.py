"""Two imaginary kinds of cluster.

As they would be added: `KIND.py`, `launchers/KIND.py`, a line of the registry. Rented hosts know a limit that may be
exceeded, and set one thing of a link; pods are virtual hosts of this machine.
"""
