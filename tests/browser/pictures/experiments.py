"""Experiments in the pictures: those of the library, run if they are missing."""

from __future__ import annotations

import time
from typing import Any, Final

import yaml

from config.services.lease import ROOT
from tests.browser.journeys.installation import Installation
from tests.browser.pictures.camera import Camera

_LIBRARY: Final = ROOT / "experiments" / "library"
_LONGEST_S: Final = 3600.0


def _changed(stem: str, **changes: Any) -> dict[str, Any]:
    return {**yaml.safe_load((_LIBRARY / f"{stem}.yaml").read_text()), **changes}


def specifications() -> dict[str, dict[str, Any]]:
    """Return experiments by their name in the pages of pictures."""
    water = _changed("water-quick", repetitions=6)
    del water["goal"]  # the pictures show six trials of each
    slower = {**water, "name": f"{water['name']}, 100 Mbit/s", "link": {**water["link"], "bandwidth": "100 Mbit/s"}}
    wide_area = _changed("wan-pingpong-quick", profile="trace")
    wide_area["sweep"] = {"link.delay": ["0 ms", "4 ms", "16 ms"], "message_bytes": ["64 KiB", "1 MiB"]}
    return {
        "water": water,
        "slower": {**slower, "repetitions": 3},
        "wide_area": {**wide_area, "parameters": {**wide_area["parameters"], "time_per_size": "1 s"}},
        "needs": _changed("ring-network-quick"),
    }


def measured(installation: Installation) -> dict[str, str]:
    """Return the slug of each, measured in full; run those that are missing."""
    answers = installation.ask("experiments/?published=false&limit=500&fields=slug,name")["results"]
    slug_of = {answer["name"]: answer["slug"] for answer in answers}
    slugs = {
        name: slug_of.get(specification["name"]) or installation.submit(specification)
        for name, specification in specifications().items()
    }
    installation.wait_for(list(slugs.values()), timeout_s=_LONGEST_S)
    return slugs


def places(installation: Installation, camera: Camera, slugs: dict[str, str]) -> dict[str, str]:
    """Objects in the addresses of pages: experiments, trials, reports and so on."""
    ask = installation.ask
    of_water = ask(f"trials/?experiment={slugs['water']}&kind=measured&hosts=4")["results"]
    traced = ask(f"trials/?experiment={slugs['wide_area']}&kind=measured")["results"]
    return {
        **slugs,
        "trial": str(of_water[-1]["id"]),
        "traced": str(traced[-1]["id"]),
        "configuration": of_water[-1]["configuration"],
        "report": _report(installation, camera, slugs["slower"]),
        "prediction": _prediction(installation, slugs["needs"]),
        "cluster": _tested(installation, "testbed"),
    }


def _report(installation: Installation, camera: Camera, slug: str) -> str:
    """As one makes it with one click."""
    address = f"reports/?text={slug}"
    if not (reports := installation.ask(address)["results"]):
        with camera.opened(f"/experiments/{slug}/", 1440, 900) as page:
            page.locator("summary", has_text="More actions").click()
            page.get_by_role("button", name="Create report").click()
            page.wait_for_url("**/reports/*/edit/")
        reports = installation.ask(address)["results"]
    return str(reports[-1]["id"])


def _prediction(installation: Installation, slug: str) -> str:
    """A delay and a rate between those that were measured, built and measured then."""
    if not (predictions := installation.ask(f"predictions/?experiment={slug}")["results"]):
        body = {"experiment": slug, "delay_s": 0.0004, "rate_bps": 150e6, "check": True}
        predictions = [installation.ask("predictions/", body)]
        installation.wait_for([slug], timeout_s=_LONGEST_S)
    return str(predictions[-1]["id"])


def _tested(installation: Installation, slug: str) -> str:
    """The cluster, with a test that is over."""
    if not installation.ask(f"clusters/{slug}/")["test"]:
        installation.ask(f"clusters/{slug}/test/", {})
    deadline = time.monotonic() + _LONGEST_S
    while not installation.ask(f"clusters/{slug}/")["test"]["ended_at"]:
        assert time.monotonic() < deadline, f"the test of {slug} does not end"
        time.sleep(0.5)
    return slug
