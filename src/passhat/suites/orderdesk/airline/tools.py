"""The tools of the airline desk. Each rule of the policy is next to the action it is about."""

from __future__ import annotations

from passhat.suites.orderdesk import tools as shared
from passhat.suites.orderdesk.tools import Desk, Record, ToolError, tool, toolbox

_TOPICS = ("names", "groups", "medical")
_INCLUDED = {"saver": 0, "standard": 1, "flex": 2}
_BAG_PRICE = 35.0
_MOST_BAGS = 4


def _find_booked(desk: Desk, code: str) -> Record:
    booking = desk.find("bookings", code)
    if booking["status"] != "booked":
        raise ToolError(f"booking {code} is {booking['status']}.")
    return booking


def _flight(desk: Desk, booking: Record) -> Record:
    return desk.find("flights", booking["flight"])


def _is_disrupted(flight: Record) -> bool:
    """The airline's doing: the flight is cancelled or at least three hours late."""
    return bool(flight["status"] == "cancelled" or flight["delay"] >= 180)


@tool("Find a traveller, and so identify the user, by e-mail address.", email="e-mail address")
def find_traveller_by_email(desk: Desk, email: str) -> object:
    for number, traveller in desk.data["travellers"].items():
        if traveller["email"].casefold() == email.rstrip(".").casefold():
            desk.customer = number
            return {"traveller": number, **traveller}
    raise ToolError(f"no traveller has the e-mail address {email!r}.")


@tool(
    "Find a traveller, and so identify the user, by a booking code and the family name.",
    code="booking code, six letters or digits",
    family_name="family name",
)
def find_traveller_by_booking(desk: Desk, code: str, family_name: str) -> object:
    number = desk.find("bookings", code)["traveller"]
    traveller = desk.find("travellers", number)
    if traveller["name"].split()[-1].casefold() != family_name.rstrip(".").casefold():
        raise ToolError(f"booking {code} is not held under the name {family_name!r}.")
    desk.customer = number
    return {"traveller": number, **traveller}


@tool("List a traveller's bookings.", traveller="traveller number, as in T-301")
def list_bookings(desk: Desk, traveller: str) -> object:
    desk.find("travellers", traveller)
    return [
        {"code": code, **{name: booking[name] for name in ("flight", "fare", "status")}}
        | {name: _flight(desk, booking)[name] for name in ("origin", "destination")}
        for code, booking in desk.data["bookings"].items()
        if booking["traveller"] == traveller
    ]


@tool("Everything about one booking.", code="booking code")
def get_booking(desk: Desk, code: str) -> object:
    return desk.find("bookings", code)


@tool("A flight: times, status, delay and its cause.", flight="as in PN204 2031-06-14")
def get_flight(desk: Desk, flight: str) -> object:
    return desk.find("flights", flight)


@tool(
    "Flights between two towns on a day, with free seats and price.",
    origin="town",
    destination="town",
    day="as in 2031-06-14",
)
def search_flights(desk: Desk, origin: str, destination: str, day: str) -> object:
    route = (origin.casefold(), destination.casefold(), day)
    return [
        flight
        for flight in desk.data["flights"].values()
        if (flight["origin"].casefold(), flight["destination"].casefold(), flight["day"]) == route
    ]


@tool("Where a bag has been seen, oldest first.", tag="number of the bag's tag")
def bag_scans(desk: Desk, tag: str) -> object:
    return desk.find("bags", tag)


@tool("Cancel a booking and refund an amount.", code="booking code", refund="amount to refund")
def cancel_booking(desk: Desk, code: str, refund: float) -> object:
    booking = _find_booked(desk, code)
    amount_due = _refund(desk, booking)
    desk.rule(refund <= amount_due, f"{code} allows a refund of {amount_due:.2f}, not {refund:.2f}")
    desk.change(f"cancel_booking {code}", booking["traveller"])
    _flight(desk, booking)["seats"] += len(booking["passengers"])
    booking |= {"status": "cancelled", "refunded": refund}
    return {"code": code, "status": "cancelled", "refund": refund}


@tool(
    "Move a booking to another flight and charge an amount.",
    code="booking code",
    flight="the new flight, as in PN204 2031-06-14",
    charge="amount to charge in all",
)
def change_flight(desk: Desk, code: str, flight: str, charge: float) -> object:
    booking, new = _find_booked(desk, code), desk.find("flights", flight)
    old, people = _flight(desk, booking), len(booking["passengers"])
    route = ("origin", "destination")
    if any(old[end] != new[end] for end in route) or new["status"] != "scheduled":
        raise ToolError(f"{flight} is not a scheduled flight on the same route.")
    if new["seats"] < people:
        raise ToolError(f"{flight} has {new['seats']} free seats, {people} are needed.")
    desk.rule(
        booking["fare"] != "saver" or _is_disrupted(old),
        f"{code} is a saver fare and was moved although its flight is not disrupted",
    )
    desk.rule(people <= 4, f"{code} is a group of {people} and was moved at this desk")
    due = _change_price(booking, old, new)
    desk.rule(charge >= due, f"moving {code} costs {due:.2f}, not {charge:.2f}")
    desk.change(f"change_flight {code}", booking["traveller"])
    old["seats"] += people
    new["seats"] -= people
    booking |= {"flight": new["flight"], "charged": round(booking["charged"] + charge, 2)}
    return {"code": code, "flight": new["flight"], "charged": charge}


@tool(
    "Add checked bags to a booking and charge an amount.",
    code="booking code",
    bags="how many bags to add",
    charge="amount to charge in all",
)
def add_bags(desk: Desk, code: str, bags: int, charge: float) -> object:
    booking = _find_booked(desk, code)
    tier = desk.find("travellers", booking["traveller"])["tier"]
    free_bags = _INCLUDED[booking["fare"]] + (tier == "gold")
    total = booking["bags"] + bags
    if bags < 1:
        raise ToolError(f"bags should be at least 1, not {bags}.")
    due = _BAG_PRICE * (max(0, total - free_bags) - max(0, booking["bags"] - free_bags))
    desk.rule(total <= _MOST_BAGS, f"{code} would have {total} bags, {_MOST_BAGS} at most")
    desk.rule(charge >= due, f"{bags} more bags on {code} cost {due:.2f}, not {charge:.2f}")
    desk.change(f"add_bags {code}", booking["traveller"])
    booking |= {"bags": total, "charged": round(booking["charged"] + charge, 2)}
    return {"code": code, "bags": total, "charged": charge}


@tool(
    "Correct the spelling of a passenger's name.",
    code="booking code",
    passenger="the name as it stands",
    new_name="the name as it should be",
)
def correct_name(desk: Desk, code: str, passenger: str, new_name: str) -> object:
    booking = _find_booked(desk, code)
    names = [name.casefold() for name in booking["passengers"]]
    if passenger.casefold() not in names:
        raise ToolError(f"there is no passenger {passenger!r} on booking {code}.")
    place = names.index(passenger.casefold())
    letters = distance(names[place], new_name.casefold())
    desk.rule(letters <= 3, f"{passenger} and {new_name} differ in {letters} letters, 3 at most")
    desk.change(f"correct_name {code}", booking["traveller"])
    booking["passengers"][place] = new_name
    return {"code": code, "passengers": booking["passengers"]}


@tool(
    "Give a voucher for a delayed or cancelled flight.",
    code="booking code",
    amount="amount of the voucher for all passengers together",
)
def give_voucher(desk: Desk, code: str, amount: float) -> object:
    booking = desk.find("bookings", code)
    # Compensation is owed for the flight first booked, also after a move to another one.
    flight = desk.find("flights", booking["first_flight"])
    per_passenger = 120 if flight["status"] == "cancelled" else 50 if flight["delay"] >= 120 else 0
    due = 0 if flight["cause"] == "weather" or booking["voucher"] else per_passenger
    amount_due = float(due * len(booking["passengers"]))
    desk.rule(
        amount <= amount_due, f"{code} allows a voucher of {amount_due:.2f}, not {amount:.2f}"
    )
    desk.change(f"give_voucher {code}", booking["traveller"])
    booking["voucher"] = round(booking["voucher"] + amount, 2)
    return {"code": code, "voucher": amount}


@tool(
    "Pay for a bag that came late or is lost.",
    code="booking code",
    tag="number of the bag's tag",
    amount="amount to pay",
)
def file_bag_claim(desk: Desk, code: str, tag: str, amount: float) -> object:
    booking, bag = desk.find("bookings", code), desk.find("bags", tag)
    if bag["code"] != booking["code"]:
        raise ToolError(f"bag {tag} does not belong to booking {code}.")
    amount_due = 0.0 if tag in booking["claims"] else _bag_payment(desk, booking, bag)
    desk.rule(amount <= amount_due, f"bag {tag} allows {amount_due:.2f}, not {amount:.2f}")
    desk.change(f"file_bag_claim {tag}", booking["traveller"])
    booking["claims"][tag] = amount
    return {"tag": tag, "paid": amount}


@tool("Give the user to a colleague; this ends the conversation.", topic="names, groups or medical")
def hand_over(desk: Desk, topic: str) -> object:
    return shared.hand_over(desk, topic, _TOPICS)


def _refund(desk: Desk, booking: Record) -> float:
    """The most that may be refunded."""
    paid = float(booking["paid"])
    recent = desk.days_since(booking["booked"]) <= 1
    is_cancelled = _flight(desk, booking)["status"] == "cancelled"
    if recent or is_cancelled or booking["insured"] or booking["fare"] == "flex":
        return paid
    return max(0.0, paid - 60) if booking["fare"] == "standard" else 0.0


def _change_price(booking: Record, old: Record, new: Record) -> float:
    if _is_disrupted(old):
        return 0.0
    fee = 40.0 if booking["fare"] == "standard" else 0.0
    dearer = max(0.0, float(new["price"]) - float(old["price"]))
    return fee + dearer * len(booking["passengers"])


def _bag_payment(desk: Desk, booking: Record, bag: Record) -> float:
    flown = desk.days_since(_flight(desk, booking)["day"])
    delivery = bag["delivered"]
    if not delivery and desk.days_since(bag["scans"][-1]["day"]) > 21:
        return 600.0
    late = flown - desk.days_since(delivery) if delivery else flown
    return 40.0 * min(5, late)


def distance(a: str, other: str) -> int:
    """Letters to change, add or drop to make one name of the other.

    Examples
    --------
    >>> distance("jonh", "john")
    2
    """
    row = list(range(len(other) + 1))
    for i, left in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]


TOOLS = toolbox(globals().values())
