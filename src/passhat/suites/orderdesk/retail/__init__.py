"""The retail desk: orders, returns, exchanges, refunds, addresses, carrier scans."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from passhat.suites.orderdesk.retail.tools import TOOLS
from passhat.suites.orderdesk.scenarios import Domain, Scenario, read_domain
from passhat.suites.orderdesk.tools import Record

__all__ = ["retail"]


@cache
def retail() -> Domain:
    """The domain, read once; it never changes."""
    return read_domain("retail", TOOLS, _complete, _introduce)


def _complete(records: Record) -> None:
    """Complete the records: orders list skus, the rest of an item comes from its product."""
    for number, order in records["orders"].items():
        order["number"] = number
        order["address"] = records["customers"][order["customer"]]["address"]
        order["items"] = [_item(records["products"], *item) for item in order["items"]]
        order |= {"voucher": 0.0, "trace": False, "resent": False, "refunded": 0.0}


def _item(products: Record, sku: str, price: float, clearance: bool = False) -> Record:
    product = products[sku]
    return {
        "sku": sku,
        "name": product["name"],
        "category": product["category"],
        "price": price,
        "clearance": clearance,
        "state": "bought",
    }


def _introduce(records: Record, scenario: Scenario) -> Mapping[str, str]:
    customer = records["customers"][scenario.customer]
    if scenario.identity == "email":
        return {"email": f"My e-mail address is {customer['email']}"}
    return {
        "email": "I do not remember which e-mail address I gave you.",
        "name": f"My name is {customer['name']}.",
        "postcode": f"The postcode is {customer['postcode']}.",
    }
