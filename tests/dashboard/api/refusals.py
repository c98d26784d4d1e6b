"""Refusals of requests that are valid by the schema, with the reasons.

A refusal that is not here fails the tests: either the schema can say it, or REST can take it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Refusal:
    """Errors at paths like ``at`` with messages like ``says``, and ``why``."""

    at: str
    says: str
    why: str

    def explains(self, error: Mapping[str, Any]) -> bool:
        return all(
            re.fullmatch(pattern, error[part], re.DOTALL)
            for pattern, part in ((self.at, "path"), (self.says, "message"))
        )


_STORED: Final = "what is stored decides, and it changes while the site runs"
_BESIDE: Final = "another field of the same request decides"
_GRAMMAR: Final = "a language with a grammar of its own"
_YAML: Final = "YAML is one string to a schema; the schema of JSON beside it says what must stand in it"

_EVERYWHERE: Final = (
    Refusal(
        ".*", ".*holds characters that are not text.*", "patterns of every text and key would have to leave NUL out"
    ),
    Refusal(".*", "Null characters are not allowed.", "as above, refused by the framework"),
    Refusal(".*", "nested too deeply", "schemas count no levels"),
    Refusal(".*", "is too large a number", "fields that no schema names may hold numbers of any size"),
)
_LISTS: Final = (
    Refusal("cursor", "is not one that a page gave as next or previous", _STORED),
    Refusal("offset|ordering", "cannot be given with cursor.*", _BESIDE),
    Refusal("workload", "Select a valid choice.*", _STORED),
    Refusal("metric|counted|metrics", "(.* )?is not a metric.?|names no metric", _STORED),
    Refusal("ordering", "Select a valid choice.*|Write -?metric:.*|metric:NAME cannot be combined.*", _STORED),
    Refusal("offset", "is not possible in the order of a metric.*", _BESIDE),
    Refusal("x|y|colour|facet", ".*is not (the name of )?a (parameter|metric).*", _STORED),
    Refusal("columns", "columns: .* is not a metric.", _STORED),
    Refusal("where", "Conditions: .*", _GRAMMAR),
    Refusal("where_metrics", ".*", _GRAMMAR),
    Refusal("every", "every: rows are configurations.*", _BESIDE),
)
_SPECIFICATION: Final = (
    Refusal("", "a specification is a mapping of fields.*|.*YAML.*", _YAML),
    Refusal(
        r"(parameters|sweep)\..*",
        ".*",
        "parameters are those of the workload: GET /workloads/NAME/ has a schema of each",
    ),
    Refusal(r"zip\.\d+", ".* is not swept|needs two or more swept parameters.*", _BESIDE),
    Refusal("where", ".*", _GRAMMAR),
    Refusal("deciding", ".*", _STORED),
    Refusal(r"transport|sweep\.transport", ".*", _GRAMMAR),
    Refusal("grows_with_hosts", ".* is not swept|weak scaling must name.*", _BESIDE),
    Refusal(
        r"link\..*|time_limit_s",
        ".*must be (greater|less) than.*|must be a whole number.*",
        "the unit of a quantity that is a text",
    ),
    Refusal(r"link\.rates", ".* is not a (possible rate|bandwidth).*", "the unit of a quantity that is a text"),
    Refusal(r"link\..*", ".*(jitter|delay|loss|rates|sites|emulator|queue).*", _BESIDE),
)
_PROGRAM: Final = (
    Refusal("", "a program is a mapping of fields.*|.*YAML.*", _YAML),
    Refusal(r"(program|parts|placeholders|inputs|decks|environment|container|clusters)(\..*)?", ".*", _GRAMMAR),
    Refusal("success|failure|extract", ".*regular expression.*|.*give one of regex, json_pointer.*", _GRAMMAR),
    Refusal("extract", ".*(two figures|the factor|no name of a file|the name of a file|needs a group).*", _GRAMMAR),
    Refusal("deciding", ".* is none of the figures.*", _BESIDE),
)
_REPORT: Final = (
    Refusal("project", "there is no project .* in which you may write", _STORED),
    Refusal("text", ".*", _GRAMMAR),
)
_OF: Final[Mapping[tuple[str, str], tuple[Refusal, ...]]] = {
    ("/api/v1/bundles/", "post"): (Refusal(r"of(\.\d+)?", ".*", _STORED),),
    ("/api/v1/compare/", "get"): (
        Refusal("of", "Not found, or in projects of which you are not a member: .*", _STORED),
        Refusal("of", "There is no common point .*|.*baseline.*", _BESIDE),
    ),
    ("/api/v1/experiments/", "post"): _SPECIFICATION,
    ("/api/v1/experiments/{slug}/", "put"): _SPECIFICATION,
    ("/api/v1/validate/", "post"): _SPECIFICATION,
    ("/api/v1/experiments/{slug}/repetitions/", "post"): (
        Refusal("repetitions", "must be less than or equal to 1000.*", "those that there are count too"),
    ),
    ("/api/v1/experiments/{slug}/one-more-round/", "post"): (
        Refusal(
            "|budget|time|goal|repetitions",
            ".*(at least one|too small|round is running|no goal|time|repetitions).*",
            _STORED,
        ),
    ),
    ("/api/v1/imports/", "post"): (Refusal(".*", ".*", "schemas say nothing of the bytes of a file"),),
    ("/api/v1/networks/", "put"): (
        Refusal(r"\d+\.name", "the name is used twice", "schemas compare whole items only"),
    ),
    ("/api/v1/people/", "post"): (
        Refusal("name", "A user with that username already exists.", _STORED),
        Refusal("email", "Enter a valid email address.", "the format of schemas allows addresses that no mail reaches"),
        Refusal("project", ".*", _STORED),
    ),
    ("/api/v1/predictions/", "post"): (
        Refusal("experiment", "there is no experiment.*", _STORED),
        Refusal("experiment|at|delay_s|rate_bps|loss|", ".*(no |not |needs |only |trace).*", _STORED),
    ),
    ("/api/v1/predictions/{id}/check/", "post"): (Refusal("check", "This link cannot be added.*", _STORED),),
    ("/api/v1/programs/", "post"): _PROGRAM,
    ("/api/v1/programs/{slug}/", "put"): (*_PROGRAM, Refusal("name", "a registered program keeps its name", _YAML)),
    ("/api/v1/reports/", "post"): _REPORT,
    ("/api/v1/configurations/", "get"): (Refusal("where", ".*", _GRAMMAR),),
    ("/api/v1/trials/", "get"): (Refusal("where", ".*", _GRAMMAR),),
    ("/api/v1/reports/{id}/", "put"): _REPORT,
    ("/api/v1/trials/{id}/series/", "get"): (
        Refusal("limit|offset", "is for hosts.*", _BESIDE),
        Refusal("scope", "hosts do not distinguish.*", _BESIDE),
    ),
    ("/api/v1/shares/", "post"): (
        Refusal("experiment", "there is no such experiment", _STORED),
        Refusal("compare", ".*", "the query of a page, in which experiments that are stored have to be named"),
    ),
}


def unexplained(path: str, method: str, errors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the ``errors`` of an answer that are not listed here."""
    lists = _LISTS if method == "get" else ()
    data = (*_EVERYWHERE, *lists, *_OF.get((path, method), ()))
    return [error for error in errors if not any(row.explains(error) for row in data)]
