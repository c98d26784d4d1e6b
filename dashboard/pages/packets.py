"""Packet inspector of a trial: a list in pages, and all fields of one packet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from analysis.capture.dissect import dissect
from analysis.capture.listing import list_packets
from analysis.errors import CaptureError, FilterError
from analysis.numbers import plural
from dashboard.panels.trial.between import Between
from dashboard.panels.trial.packets import PacketQuery, protocol
from dashboard.requests.concurrency_limits import Busy, acquire
from dashboard.requests.lookup import find_trial, query_value
from experiments.errors import NotPlain, StoreUnavailable, Tampered
from experiments.files import read_analysis
from experiments.models import Artifact, Trial

PAGE = 50
TIMEOUT_S = 20.0
AT_ONCE: Final = 3
"""Each occupies a thread while tshark runs: fewer than one web process has."""
LONGEST_S: Final = 60
Result = TypeVar("Result")


@require_GET
def packets(request: HttpRequest, pk: int) -> HttpResponse:
    """Render a page of packets, selected by number, time and filter.

    An invalid value shows an error at its field and leaves the list unchanged.
    """
    trial, query = find_trial(request, pk), PacketQuery.of(request)
    try:
        frames = query.frames
        looked = {"frames": frames, "seconds": query.seconds, "display_filter": query.filter, "limit": PAGE}
        listed = _looked(request, trial, list_packets, **looked)
    except Busy:
        return _wait(request, "trial/_packet_rows_waiting.html")
    except FilterError as error:
        return _wrong(request, "filter", str(error))
    except (CaptureError, ValueError) as error:
        return _wrong(request, "range", str(error))
    more = ""
    if len(listed) == PAGE and listed[-1].number < frames[1]:
        more = query.address(first=str(listed[-1].number + 1))
    rows = [(row, query.of_connection(row.connection)) for row in listed]
    context: dict[str, Any] = {"trial": trial, "rows": rows, "more": more}
    context["is_first_page"] = "page" not in request.GET
    response = render(request, "trial/_packet_rows.html", context)
    if context["is_first_page"]:
        response["HX-Replace-Url"] = f"{trial.get_absolute_url()}?{query.address()}"
    return response


@require_GET
def between(request: HttpRequest, pk: int) -> HttpResponse:
    """Redirect from a matrix entry to its packets."""
    trial, ends = find_trial(request, pk), (query_value(request, "from"), query_value(request, "to"))
    analysis = read_analysis(trial) or {}
    kind = "rank" if query_value(request, "of") == "rank" else "host"
    selection = Between.of(analysis, kind, *ends)
    if selection is None:
        words = f"No packets from {kind} {ends[0]} to {kind} {ends[1]}: they share a host or exchanged no packets."
        messages.info(request, words)
        return redirect(f"{trial.get_absolute_url()}?{PacketQuery().address()}")
    if selection.left_out:
        omitted = plural(selection.left_out, "connection")
        messages.info(request, f"{omitted} with fewer bytes omitted: the filter would be too long.")
    return redirect(f"{trial.get_absolute_url()}?{PacketQuery(filter=selection.filter).address()}")


@require_GET
def packet(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Show all layers and fields of one packet."""
    trial = find_trial(request, pk)
    try:
        listed = _looked(request, trial, dissect, frames=(number, number), limit=1)
    except Busy:
        return _wait(request, "trial/_packet_waiting.html")
    except (CaptureError, ValueError) as error:
        return _wrong(request, "range", str(error))
    if not listed:
        raise Http404(f"the capture has no packet {number}")
    context = {"packet": listed[0], "opened": protocol(listed[0]).lower()}
    return render(request, "trial/_packet.html", context)


def _looked(request: HttpRequest, trial: Trial, look: Callable[..., list[Result]], **asked_for: Any) -> list[Result]:
    """Run tshark. Raise what ``look`` raises, without paths of this machine; Busy."""
    artifact = trial.artifacts.filter(kind=Artifact.Kind.CAPTURE, removed_at=None).first()
    if artifact is None:
        raise Http404("this trial has no stored capture")
    with acquire(request.user, "packets", total=AT_ONCE, expires_s=LONGEST_S), _capture(artifact) as file:
        try:
            return look(file, timeout_s=TIMEOUT_S, **asked_for)
        except FilterError:
            raise
        except CaptureError as error:
            raise CaptureError(str(error).replace(str(file), file.name)) from None


@contextmanager
def _capture(artifact: Artifact) -> Iterator[Path]:
    with ExitStack() as block:
        try:
            file = block.enter_context(artifact.intact())
        except FileNotFoundError:
            raise Http404("this trial has no stored capture") from None
        except (Tampered, NotPlain, StoreUnavailable) as error:
            raise CaptureError(str(error)) from None
        yield file


def _wait(request: HttpRequest, template: str) -> HttpResponse:
    """Return an element that repeats the request in a second."""
    again = request.GET.copy()
    again["waited"] = "1"
    words = "Other packets are being read. These follow, and appear here."
    return render(request, template, {"again": f"{request.path}?{again.urlencode()}", "words": words})


def _wrong(request: HttpRequest, field: str, message: str) -> HttpResponse:
    """Return the message at its field; of the list only a waiting row is removed."""
    response = render(request, "trial/_packets_wrong.html", {"field": field, "message": message})
    response["HX-Reswap"] = "delete" if query_value(request, "waited") else "none"
    return response
