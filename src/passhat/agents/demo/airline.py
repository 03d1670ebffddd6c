"""The clerk at the airline desk: one small routine for every kind of wish."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import partial
from types import MappingProxyType
from typing import Any

from passhat.agents.demo.talking import CARE, Clerk, Mind, Request, Steps, ask_or_forget, say, use

__all__ = ["AirlineClerk"]

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
