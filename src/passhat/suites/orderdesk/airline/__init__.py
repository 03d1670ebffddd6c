"""The airline desk: bookings, changes, baggage, names, compensation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from passhat.suites.orderdesk.airline.tools import TOOLS
from passhat.suites.orderdesk.scenarios import Domain, Scenario, read_domain
from passhat.suites.orderdesk.tools import Record

__all__ = ["airline"]

_FLIGHT = ("origin", "destination", "departs", "price", "seats", "status", "delay", "cause")


@cache
def airline() -> Domain:
    """The domain, read once; it never changes."""
    return read_domain("airline", TOOLS, _complete, _introduce)


def _complete(records: Record) -> None:
    """Complete the records: flights are rows in the file, bookings start unchanged."""
    for key, row in records["flights"].items():
        number, day = key.split()
        flight = {"flight": key, "number": number, "day": day}
        records["flights"][key] = flight | dict(zip(_FLIGHT, row, strict=True))
    for code, booking in records["bookings"].items():
        booking |= {"code": code, "status": "booked", "refunded": 0.0, "charged": 0.0}
        booking |= {"voucher": 0.0, "claims": {}, "first_flight": booking["flight"]}


def _introduce(records: Record, scenario: Scenario) -> Mapping[str, str]:
    traveller = records["travellers"][scenario.customer]
    if scenario.identity == "email":
        return {"email": f"My e-mail address is {traveller['email']}"}
    code = next(
        code
        for code, booking in records["bookings"].items()
        if booking["traveller"] == scenario.customer
    )
    return {
        "email": "I booked with an old e-mail address that I do not remember.",
        "code": f"One of my booking codes is {code}.",
        "name": f"My family name is {traveller['name'].split()[-1]}.",
    }
