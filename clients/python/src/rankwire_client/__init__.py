"""Client of Rankwire's REST interface (docs/reference/rest.md)."""

from rankwire_client.client import Client
from rankwire_client.errors import NotMade, NotReached, Problem, RankwireError, Refused, TimeLimit

__all__ = ["Client", "NotMade", "NotReached", "Problem", "RankwireError", "Refused", "TimeLimit"]
