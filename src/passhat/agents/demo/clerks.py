"""The clerks at the airline and retail desks: one small routine for every kind of wish."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from types import MappingProxyType
from typing import Any

from passhat.agents.demo.talking import (
    CARE,
    Clerk,
    Mind,
    Request,
    Steps,
    ask_or_forget,
    say,
    use,
    words_of,
)

Booking = Mapping[str, Any]
Flight = Mapping[str, Any]

_CODE = re.compile(r"\b[A-Z0-9]{6}\b")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_INCLUDED_BAGS = MappingProxyType({"saver": 0, "standard": 1, "flex": 2})


class AirlineClerk(Clerk):
    """Applies the rules of the airline policy."""

    kinds = MappingProxyType(
        {
            "person": r"\b(?:someone else|another person)\b",
            "name": r"\bname\b",
            "refundable": r"only if I get money back",
            "cancel": r"\bcancel\b",
            "change": r"\b(?:another flight|rebook)\b",
            "bags": r"\bluggage\b",
            "bag": r"\bsuitcase\b",
            "status": r"\bon time\b",
            "delay": r"\b(?:compensation for|get for)\b",
        }
    )
    handed_over = MappingProxyType({"person": "names"})

    def __init__(self, mind: Mind, today: date) -> None:
        super().__init__(mind, today)
        self._traveller: Mapping[str, Any] = {}

    def identify(self) -> Steps[None]:
        if email := (yield from self.ask_for_email()):
            traveler = yield from use("find_traveller_by_email", email=email)
        else:
            words = yield from say("Then please tell me a booking code and your family name.")
            code, name = _CODE.search(words), re.search(r"family name is (\w+)", words)
            traveler = yield from use(
                "find_traveller_by_booking",
                code=code[0] if code else "",
                family_name=name[1] if name else "",
            )
        self._traveller = traveler or {}

    def handle(self, request: Request) -> Steps[str]:
        booking = yield from self._booking(request)
        if booking is None:
            return "I could not find that booking."
        flight = yield from use("get_flight", flight=booking["flight"])
        routine = getattr(self, f"_{request.kind}")
        report: str = yield from routine(booking, flight)
        return report

    def _booking(self, request: Request) -> Steps[Booking | None]:
        """By the code in the sentence, or by the towns of the trip."""
        code = _CODE.search(request.sentence)
        if code and not self.mind.slips(0.3):
            booking: Booking | None = yield from use("get_booking", code=code[0])
            return booking
        self.mind.gets_harder()
        number = self._traveller.get("traveller", "")
        bookings = yield from use("list_bookings", traveller=number)

        def likely(row: Mapping[str, str]) -> tuple[int, str]:
            towns = sum(row[end] in request.sentence for end in ("origin", "destination"))
            return towns, row["flight"].split()[1]

        candidates = sorted(bookings or [], key=likely, reverse=True)
        if not candidates:
            return None
        place = 1 if len(candidates) > 1 and self.mind.slips(CARE) else 0
        booking = yield from use("get_booking", code=candidates[place]["code"])
        return booking

    def _cancel(self, booking: Booking, flight: Flight) -> Steps[str]:
        words = yield from ask_or_forget(self.mind, "What is the reason?")
        refund = self._refund(booking, flight, ill=bool(re.search(r"\bill\b|sick|doctor", words)))
        result = yield from use("cancel_booking", code=booking["code"], refund=refund)
        return self._report_amount(result, "The booking is cancelled; your refund is", refund)

    def _refundable(self, booking: Booking, flight: Flight) -> Steps[str]:
        words = yield from ask_or_forget(self.mind, "What is the reason?")
        refund = self._refund(booking, flight, ill="ill " in words)

        def cancel() -> Steps[str]:
            result = yield from use("cancel_booking", code=booking["code"], refund=booking["paid"])
            return self._report_amount(
                result, "The booking is cancelled; your refund is", booking["paid"]
            )

        if not refund and not self.mind.slips(CARE):
            return self.refuse(f"a {booking['fare']} fare is not refundable", cancel)
        return (yield from cancel())

    def _refund(self, booking: Booking, flight: Flight, *, ill: bool) -> float:
        """The refund under the rules, unless a rule is overlooked."""
        paid = float(booking["paid"])
        recent = (self.today - date.fromisoformat(booking["booked"])).days <= 1
        is_disrupted = flight["status"] == "cancelled"
        if recent or is_disrupted or booking["fare"] == "flex" or (booking["insured"] and ill):
            return paid
        if self.mind.slips(CARE):
            return paid
        return max(0.0, paid - 60) if booking["fare"] == "standard" else 0.0

    def _change(self, booking: Booking, flight: Flight) -> Steps[str]:
        if len(booking["passengers"]) > 4 and not self.mind.slips(CARE):
            yield from self.pass_on("groups")
        is_disrupted = flight["status"] == "cancelled" or flight["delay"] >= 180
        if booking["fare"] == "saver" and not is_disrupted and not self.mind.slips(CARE):
            move = partial(self._move_flight, booking, flight, is_disrupted)
            return self.refuse("a saver fare is not open to changes", move)
        return (yield from self._move_flight(booking, flight, is_disrupted))

    def _move_flight(self, booking: Booking, flight: Flight, is_disrupted: bool) -> Steps[str]:
        words = yield from say("On which day would you like to fly?")
        day = _DAY.search(words)
        route = {"origin": flight["origin"], "destination": flight["destination"]}
        flights = yield from use("search_flights", **route, day=day[0] if day else "")
        people = len(booking["passengers"])
        free = [flight for flight in flights or [] if flight["seats"] >= people]
        if not free:
            self.mind.gets_harder()
            return "I am sorry, that is not possible: no flight has seats on that day."
        dearer = max(0.0, free[0]["price"] - flight["price"])
        people = 1 if self.mind.slips(CARE) else people
        fee = 40.0 if booking["fare"] == "standard" and not self.mind.slips() else 0.0
        charge = 0.0 if is_disrupted else fee + dearer * people
        result = yield from use(
            "change_flight", code=booking["code"], flight=free[0]["flight"], charge=charge
        )
        return self._report_amount(result, "The flight is changed; the charge is", charge)

    def _bags(self, booking: Booking, _flight: Flight) -> Steps[str]:
        words = yield from ask_or_forget(self.mind, "How many bags are there to add?")
        number = re.search(r"\b[1-4]\b", words)
        bags = int(number[0]) if number else 1
        free_bags = _INCLUDED_BAGS[booking["fare"]]
        if self._traveller.get("tier") == "gold" and not self.mind.slips(CARE):
            free_bags += 1
        paid = max(0, booking["bags"] - free_bags)
        charge = 35.0 * (max(0, booking["bags"] + bags - free_bags) - paid)
        result = yield from use("add_bags", code=booking["code"], bags=bags, charge=charge)
        return self._report_amount(result, "The luggage is added; the charge is", charge)

    def _name(self, booking: Booking, _flight: Flight) -> Steps[str]:
        words = yield from say("How should the name be spelled?")
        spelling = re.search(r"spelled ([^.]+)", words)
        new = spelling[1] if spelling else ""
        nearest = max(booking["passengers"], key=lambda name: len(set(name) & set(new)))
        result = yield from use(
            "correct_name", code=booking["code"], passenger=nearest, new_name=new
        )
        return "The name is corrected." if result else "I am sorry, that did not work."

    def _status(self, _booking: Booking, flight: Flight) -> Steps[str]:
        yield from ()
        late = "" if self.mind.slips() else f" by {flight['delay']} minutes"
        return f"{flight['flight']} is late{late}." if flight["delay"] else "It is on time."

    def _delay(self, booking: Booking, flight: Flight) -> Steps[str]:
        """For the flight first booked, which a change may have replaced."""
        if booking["first_flight"] != booking["flight"]:
            flight = yield from use("get_flight", flight=booking["first_flight"])
        amount = 120.0 if flight["status"] == "cancelled" else 50.0
        people = 1 if self.mind.slips(CARE) else len(booking["passengers"])
        give = partial(self._give_voucher, booking, amount * people)
        if flight["cause"] == "weather" and not self.mind.slips(CARE):
            return self.refuse("the cause was weather", give)
        short = flight["status"] != "cancelled" and flight["delay"] < 120
        if short and not self.mind.slips(CARE):
            return self.refuse("there is a voucher only from 120 minutes on", give)
        return (yield from give())

    def _give_voucher(self, booking: Booking, value: float) -> Steps[str]:
        result = yield from use("give_voucher", code=booking["code"], amount=value)
        return self._report_amount(result, "You get a voucher", value)

    def _bag(self, booking: Booking, flight: Flight) -> Steps[str]:
        words = yield from say("What number is on the tag?")
        match = re.search(r"BG-\d{4}", words)
        tag = match[0] if match else ""
        bag = yield from use("bag_scans", tag=tag)
        if not bag:
            return "I am sorry, I cannot find that bag."
        amount = self._bag_payment(flight, bag)
        result = yield from use("file_bag_claim", code=booking["code"], tag=tag, amount=amount)
        return self._report_amount(result, "You are paid", amount)

    def _bag_payment(self, flight: Flight, bag: Mapping[str, Any]) -> float:
        silent = (self.today - date.fromisoformat(bag["scans"][-1]["day"])).days
        if not bag["delivered"] and silent > 21 and not self.mind.slips(CARE):
            return 600.0
        until = date.fromisoformat(bag["delivered"]) if bag["delivered"] else self.today
        late = (until - date.fromisoformat(flight["day"])).days
        return 40.0 * min(5, late + self.mind.slips(CARE))

    def _report_amount(self, result: Any, text: str, value: float) -> str:
        return self.amount(text, value) if result else "I am sorry, that did not work."


Order = Mapping[str, Any]
Item = Mapping[str, Any]

_USUAL_STATUS = MappingProxyType(
    {"cancel": "processing", "address": "processing", "parcel": "shipped"}
)


class RetailClerk(Clerk):
    """Applies the rules of the retail policy."""

    kinds = MappingProxyType(
        {
            "billing": r"\btax\b",
            "cancel": r"\bcancel\b",
            "exchange": r"\b(?:exchange|swap)\b",
            "return": r"\b(?:return|send back)\b",
            "address": r"\baddress\b",
            "parcel": r"\b(?:not arrived|still waiting)\b",
            "damage": r"\b(?:broken|damaged)\b",
            "late": r"\blate\b",
        }
    )
    handed_over = MappingProxyType({"billing": "billing"})

    def __init__(self, mind: Mind, today: date) -> None:
        super().__init__(mind, today)
        self._customer = ""

    def identify(self) -> Steps[None]:
        if email := (yield from self.ask_for_email()):
            customer = yield from use("find_customer_by_email", email=email)
        else:
            words = yield from say("Then please tell me your name and your postcode.")
            name = re.search(r"name is ([^.]+)", words)
            postcode = re.search(r"\b\d{4}\b", words)
            customer = yield from use(
                "find_customer_by_name",
                name=name[1] if name else "",
                postcode=postcode[0] if postcode else "",
            )
        self._customer = customer["customer"] if customer else ""

    def handle(self, request: Request) -> Steps[str]:
        order = yield from self._order(request)
        if order is None:
            return "I could not find that order."
        if request.kind in ("damage", "late") and order["status"] != "delivered":
            return "I am sorry, I cannot do that: it is not delivered yet."
        routine = getattr(self, f"_{request.kind}")
        report: str = yield from routine(order, request)
        return report

    def _order(self, request: Request) -> Steps[Order | None]:
        """Look up the order by its number in the sentence, or by the customer's items."""
        number = re.search(r"\bR-\d{4}\b", request.sentence)
        if number and not self.mind.slips(0.3):
            order: Order | None = yield from use("get_order", order=number[0])
            return order
        self.mind.gets_harder()
        orders = yield from use("list_orders", customer=self._customer)
        words = words_of(request.sentence)
        usual = _USUAL_STATUS.get(request.kind, "delivered")

        def likely(order: Order) -> tuple[int, bool]:
            fits = max(len(words & words_of(name)) for name in order["items"])
            return fits, order["status"] == usual

        candidates = sorted(orders or [], key=likely, reverse=True)
        if not candidates:
            return None
        place = 1 if len(candidates) > 1 and self.mind.slips(CARE) else 0
        order = yield from use("get_order", order=candidates[place]["order"])
        return order

    def _items(self, order: Order, request: Request) -> list[Item]:
        """The items the sentence names, or all of them."""
        words = words_of(request.sentence)
        items: Sequence[Item] = order["items"]
        matches = [item for item in items if words & words_of(item["name"].partition(",")[0])]
        if matches and len(items) > len(matches) and self.mind.slips(CARE):
            matches = [item for item in items if item not in matches][:1]
        return matches or list(items)

    def _cancel(self, order: Order, _request: Request) -> Steps[str]:
        if order["status"] != "processing" and not self.mind.slips(CARE):
            because = (
                f"order {order['number']} is {order['status']}; "
                f"its delivery is promised for {order['promised']}"
            )
            return self.refuse(because, partial(self._cancel_order, order))
        return (yield from self._cancel_order(order))

    def _cancel_order(self, order: Order) -> Steps[str]:
        words = yield from ask_or_forget(self.mind, "What is the reason?")
        reason = "mistake" if "mistake" in words else "not_needed"
        result = yield from use("cancel_order", order=order["number"], reason=reason)
        return self._report_amount(result, "The order is cancelled, and you get back", "refunded")

    def _address(self, order: Order, _request: Request) -> Steps[str]:
        words = yield from say("What is the new address?")
        address = re.search(r"new address is ([^.]+)", words)
        address_text = address[1] if address else ""
        if self.mind.slips():
            address_text = address_text.partition(",")[0]  # noted only the street
        change = partial(use, "change_address", order=order["number"], address=address_text)
        if order["status"] != "processing" and not self.mind.slips(CARE):
            return "I am sorry, I cannot change that: the order has left."
        result = yield from change()
        return "The address is changed." if result else "That did not work."

    def _return(self, order: Order, request: Request) -> Steps[str]:
        items = self._items(order, request)
        if (why := self._refusal_reason(order, items)) and not self.mind.slips(CARE):
            return self.refuse(why, partial(self._return_items, order, items))
        return (yield from self._return_items(order, items))

    def _return_items(self, order: Order, items: Sequence[Item]) -> Steps[str]:
        words = yield from ask_or_forget(
            self.mind, "Should the refund go to your card or to a voucher?"
        )
        way = "voucher" if "voucher" in words else "card"
        if order["payment"] == "voucher" and way == "card" and not self.mind.slips(CARE):
            yield from say(
                "You paid by voucher, so it can only go to a voucher. Is that all right?"
            )
            way = "voucher"
        skus = [item["sku"] for item in items]
        result = yield from use("return_items", order=order["number"], items=skus, refund_to=way)
        return self._report_amount(result, f"The return is noted; refund to your {way}", "refund")

    def _exchange(self, order: Order, request: Request) -> Steps[str]:
        item = self._items(order, request)[0]
        if (why := self._refusal_reason(order, [item])) and not self.mind.slips(CARE):
            return f"I am sorry, I cannot do that: {why}."
        variants = yield from use("get_product", sku=item["sku"])
        words = yield from say("Which one would you like instead?")
        words_given = words_of(words)
        others = [sku for sku in variants or {} if sku != item["sku"]]
        if not others:
            return "I am sorry, I cannot do that: there is no other variant."
        others.sort(
            key=lambda sku: -len(words_given & words_of(variants[sku]["name"].partition(",")[2]))
        )
        variant = others[1] if len(others) > 1 and self.mind.slips(CARE) else others[0]
        if variants[variant]["stock"] < 1:
            self.mind.gets_harder()
            return f"I am sorry, I cannot do that: {variants[variant]['name']} is out of stock."
        result = yield from use(
            "exchange_item", order=order["number"], item=item["sku"], new_item=variant
        )
        return self._report_amount(
            result, "The exchange is noted; the price difference is", "difference"
        )

    def _parcel(self, order: Order, _request: Request) -> Steps[str]:
        scans = yield from use("carrier_scans", tracking=order.get("tracking", ""))
        if not scans:
            return "I am sorry, the carrier knows nothing of it."
        last = scans[-1]
        age = (self.today - date.fromisoformat(last["day"])).days
        if self.mind.slips(CARE):
            age = 0  # took the first scan for good news
        if age > 14:
            words = yield from ask_or_forget(
                self.mind, "It is lost. Do you want a replacement or a refund?"
            )
            remedy = "refund" if re.search("refund|money", words) else "replacement"
            result = yield from use("settle_lost_parcel", order=order["number"], remedy=remedy)
            return self._report_amount(result, f"You get a {remedy}", "refund")
        if age > 7:
            result = yield from use("open_trace", order=order["number"])
            return "I have opened a trace with the carrier." if result else "That did not work."
        return f"It was last seen on {last['day']} at {last['place']} and is on its way."

    def _damage(self, order: Order, request: Request) -> Steps[str]:
        item = self._items(order, request)[0]
        settle = partial(self._settle_damage, order, item)
        if self._age(order) > 7 and not self.mind.slips(CARE):
            return self.refuse("damage is settled up to 7 days after delivery only", settle)
        return (yield from settle())

    def _settle_damage(self, order: Order, item: Item) -> Steps[str]:
        words = yield from ask_or_forget(
            self.mind, "I am sorry. Do you want a replacement or a refund?"
        )
        remedy = "refund" if re.search("refund|money", words) else "replacement"
        result = yield from use(
            "settle_damage", order=order["number"], item=item["sku"], remedy=remedy
        )
        return self._report_amount(result, f"You get a {remedy}", "refund")

    def _late(self, order: Order, _request: Request) -> Steps[str]:
        due_date, arrival = (
            date.fromisoformat(order[field]) for field in ("promised", "delivered")
        )
        total = sum(item["price"] for item in order["items"])
        value = round(total / (5 if self.mind.slips() else 10), 2)
        give = partial(self._give_voucher, order, value)
        if (arrival - due_date).days <= 3 and not self.mind.slips(CARE):
            return self.refuse("there is a voucher only for more than 3 days", give)
        return (yield from give())

    def _give_voucher(self, order: Order, value: float) -> Steps[str]:
        result = yield from use("give_voucher", order=order["number"], amount=value)
        return self._report_amount(result, "You get a voucher", "voucher")

    def _refusal_reason(self, order: Order, items: Sequence[Item]) -> str:
        """Why items cannot come back; empty when they can."""
        for item in items:
            if order["status"] != "delivered":
                return "it is not delivered yet"
            if item["clearance"]:
                return "clearance items never come back"
            if item["category"] == "hygiene":
                return "hygiene items never come back"
            days = 14 if item["category"] == "electronics" else 30
            if self._age(order) > days:
                return f"it can come back within {days} days of delivery only"
        return ""

    def _report_amount(self, result: Any, text: str, key: str) -> str:
        if not result:
            return "I am sorry, that did not work."
        return self.amount(text, result[key]) if key in result else f"{text}."

    def _age(self, order: Order) -> int:
        return (self.today - date.fromisoformat(order["delivered"])).days
