"""The tools of the retail desk. Each rule of the policy is next to the action it is about."""

from __future__ import annotations

from typing import Any

from passhat.suites.orderdesk import tools as shared
from passhat.suites.orderdesk.tools import Desk, Record, ToolError, one_of, tool, toolbox

_REASONS = ("not_needed", "mistake")
_WAYS = ("card", "voucher")
_REMEDIES = ("replacement", "refund")
_TOPICS = ("billing", "legal", "wholesale")


def _item(order: Record, sku: str) -> Record:
    for item in order["items"]:
        if item["sku"].casefold() == sku.strip().casefold():
            entry: Record = item
            return entry
    raise ToolError(f"order {order['number']} holds no {sku!r}.")


def _still_bought(item: Record) -> None:
    if item["state"] != "bought":
        raise ToolError(f"{item['sku']} is {item['state']} already.")


def _require_delivery(order: Record) -> None:
    if order["status"] != "delivered":
        raise ToolError(f"order {order['number']} is {order['status']}, not delivered.")


def _within_window(desk: Desk, order: Record, item: Record) -> None:
    """Thirty days for most things, fourteen for electronics, never for clearance and hygiene."""
    days = 14 if item["category"] == "electronics" else 30
    desk.rule(
        desk.days_since(order["delivered"]) <= days,
        f"{item['sku']} of {order['number']} is past its window of {days} days",
    )
    desk.rule(
        not item["clearance"] and item["category"] != "hygiene",
        f"{item['sku']} of {order['number']} is clearance or hygiene and cannot come back",
    )


@tool("Find a customer, and so identify the user, by e-mail address.", email="e-mail address")
def find_customer_by_email(desk: Desk, email: str) -> object:
    for number, customer in desk.data["customers"].items():
        if customer["email"].casefold() == email.rstrip(".").casefold():
            desk.customer = number
            return {"customer": number, **customer}
    raise ToolError(f"no customer has the e-mail address {email!r}.")


@tool(
    "Find a customer, and so identify the user, by name and postcode.",
    name="first and last name",
    postcode="four digits",
)
def find_customer_by_name(desk: Desk, name: str, postcode: str) -> object:
    for number, customer in desk.data["customers"].items():
        same_name = customer["name"].casefold() == name.casefold()
        if same_name and customer["postcode"] == postcode.rstrip("."):
            desk.customer = number
            return {"customer": number, **customer}
    raise ToolError(f"no customer is called {name!r} with the postcode {postcode!r}.")


@tool("List a customer's orders with their items.", customer="customer number, as in C-101")
def list_orders(desk: Desk, customer: str) -> object:
    desk.find("customers", customer)
    return [
        {
            "order": number,
            "status": order["status"],
            "items": [item["name"] for item in order["items"]],
        }
        for number, order in desk.data["orders"].items()
        if order["customer"] == customer
    ]


@tool("Everything about one order.", order="order number, as in R-2101")
def get_order(desk: Desk, order: str) -> object:
    return desk.find("orders", order)


@tool(
    "A product, and its variants with price and stock.", sku="the product's sku, as in LAMP-BRASS"
)
def get_product(desk: Desk, sku: str) -> object:
    product = desk.find("products", sku)
    return {
        name: item
        for name, item in desk.data["products"].items()
        if item["line"] == product["line"]
    }


@tool("The carrier's scans of a parcel, oldest first.", tracking="tracking number of the order")
def carrier_scans(desk: Desk, tracking: str) -> object:
    return desk.find("parcels", tracking)["scans"]


@tool(
    "Cancel an order and refund it the way it was paid.",
    order="order number",
    reason="not_needed or mistake",
)
def cancel_order(desk: Desk, order: str, reason: str) -> object:
    record = desk.find("orders", order)
    one_of("reason", reason, _REASONS)
    if record["status"] == "cancelled":
        raise ToolError(f"order {order} is cancelled already.")
    desk.rule(
        record["status"] == "processing",
        f"{order} was cancelled although it is {record['status']}, not processing",
    )
    desk.change(f"cancel_order {order}", record["customer"])
    total = _total(record["items"])
    record |= {"status": "cancelled", "cancel_reason": reason, "refunded": total}
    return {"order": order, "status": "cancelled", "refunded": total, "to": record["payment"]}


@tool(
    "Change where an order is delivered.",
    order="order number",
    address="street and number, postcode and town",
)
def change_address(desk: Desk, order: str, address: str) -> object:
    record = desk.find("orders", order)
    desk.rule(
        record["status"] == "processing",
        f"the address of {order} was changed although it is {record['status']}, not processing",
    )
    desk.change(f"change_address {order}", record["customer"])
    record["address"] = address
    return {"order": order, "address": address}


@tool(
    "Take items of a delivered order back.",
    order="order number",
    items="list of skus",
    refund_to="card or voucher",
)
def return_items(desk: Desk, order: str, items: list[str], refund_to: str) -> object:
    record = desk.find("orders", order)
    one_of("refund_to", refund_to, _WAYS)
    _require_delivery(record)
    selection = [_item(record, sku) for sku in items]
    for item in selection:
        _still_bought(item)
        _within_window(desk, record, item)
    desk.rule(
        record["payment"] != "voucher" or refund_to == "voucher",
        f"{order} was paid by voucher and refunded to a card",
    )
    desk.change(f"return_items {order}", record["customer"])
    for item in selection:
        item |= {"state": "returned", "refund_to": refund_to}
    record["refunded"] = round(record["refunded"] + _total(selection), 2)
    return {"order": order, "refund": _total(selection), "to": refund_to}


@tool(
    "Exchange an item of a delivered order for another variant; the difference is charged or "
    "refunded the way the order was paid.",
    order="order number",
    item="sku of the item",
    new_item="sku of the variant wanted",
)
def exchange_item(desk: Desk, order: str, item: str, new_item: str) -> object:
    record = desk.find("orders", order)
    _require_delivery(record)
    old, new = _item(record, item), desk.find("products", new_item)
    _still_bought(old)
    if new["line"] != desk.find("products", old["sku"])["line"]:
        raise ToolError(f"{new_item} is another product, not a variant of {item}.")
    if new["stock"] < 1:
        raise ToolError(f"{new_item} is out of stock.")
    _within_window(desk, record, old)
    desk.change(f"exchange_item {order}", record["customer"])
    new["stock"] -= 1
    old |= {"state": "exchanged", "exchanged_for": new_item.strip().upper()}
    return {"order": order, "difference": round(new["price"] - old["price"], 2)}


@tool("Ask the carrier to trace a parcel.", order="order number")
def open_trace(desk: Desk, order: str) -> object:
    record = desk.find("orders", order)
    age = _silence(desk, record)
    desk.rule(7 < age <= 14, f"a trace of {order} was opened {age} days after its last scan")
    desk.change(f"open_trace {order}", record["customer"])
    record["trace"] = True
    return {"order": order, "trace": "open", "answer_within_days": 5}


@tool("Settle a parcel that is lost.", order="order number", remedy="replacement or refund")
def settle_lost_parcel(desk: Desk, order: str, remedy: str) -> object:
    record = desk.find("orders", order)
    one_of("remedy", remedy, _REMEDIES)
    age = _silence(desk, record)
    desk.rule(age > 14, f"{order} was settled as lost {age} days after its last scan")
    desk.change(f"settle_lost_parcel {order}", record["customer"])
    return _apply_remedy(record, record["items"], remedy)


@tool(
    "Settle an item that arrived damaged.",
    order="order number",
    item="sku of the item",
    remedy="replacement or refund",
)
def settle_damage(desk: Desk, order: str, item: str, remedy: str) -> object:
    record = desk.find("orders", order)
    one_of("remedy", remedy, _REMEDIES)
    _require_delivery(record)
    selection = _item(record, item)
    _still_bought(selection)
    age = desk.days_since(record["delivered"])
    desk.rule(age <= 7, f"damage of {item} was settled {age} days after delivery")
    desk.change(f"settle_damage {order}", record["customer"])
    return _apply_remedy(record, [selection], remedy)


@tool("Give a voucher for a late delivery.", order="order number", amount="amount of the voucher")
def give_voucher(desk: Desk, order: str, amount: float) -> object:
    record = desk.find("orders", order)
    late = _days_late(desk, record)
    credit = round(_total(record["items"]) / 10, 2) if late > 3 and not record["voucher"] else 0.0
    desk.rule(amount <= credit, f"{order} allows a voucher of {credit:.2f}, not {amount:.2f}")
    desk.change(f"give_voucher {order}", record["customer"])
    record["voucher"] = round(record["voucher"] + amount, 2)
    return {"order": order, "voucher": amount}


@tool(
    "Give the user to a colleague; this ends the conversation.", topic="billing, legal or wholesale"
)
def hand_over(desk: Desk, topic: str) -> object:
    return shared.hand_over(desk, topic, _TOPICS)


def _total(items: list[Record]) -> float:
    prices: list[Any] = [item["price"] for item in items]
    return round(float(sum(prices)), 2)


def _silence(desk: Desk, order: Record) -> int:
    """Days since the carrier last saw the parcel."""
    if order["status"] != "shipped":
        raise ToolError(f"order {order['number']} is {order['status']}, not on its way.")
    return desk.days_since(desk.find("parcels", order["tracking"])["scans"][-1]["day"])


def _days_late(desk: Desk, order: Record) -> int:
    _require_delivery(order)
    return desk.days_since(order["promised"]) - desk.days_since(order["delivered"])


def _apply_remedy(order: Record, items: list[Record], remedy: str) -> object:
    amount = _total(items)
    for item in items:
        item["state"] = "replaced" if remedy == "replacement" else "refunded"
    if remedy == "replacement":
        order["resent"] = True
        return {"order": order["number"], "replacement": "on its way"}
    order["refunded"] = round(order["refunded"] + amount, 2)
    return {"order": order["number"], "refund": amount, "to": order["payment"]}


TOOLS = toolbox(globals().values())
