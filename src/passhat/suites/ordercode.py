"""ordercode: thirty small programs of order operations, in three bands.

Every task has a canonical solution, a visible example, hidden tests, and wrong solutions that a
reader in a hurry would write. The tests kill all of those, and every test kills one.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np

from passhat.judging.tasks import CodeSuite, CodeTask

_RAISES = """
def raises(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        return True
    return False

"""


@dataclass(frozen=True, slots=True)
class OrderTask:
    """A task with its solution, hidden tests, and the wrong solutions they must kill.

    Each test and each wrong solution stands for one way to misread the task.
    """

    task: CodeTask
    band: str
    tests: tuple[str, ...]
    wrong: tuple[str, ...]


def order_task(
    band: str, signature: str, text: str, example: str, right: str, tests: str, *wrong: str
) -> OrderTask:
    """Make a task; ``tests`` holds one assertion about ``f`` per line."""
    name = signature.partition("(")[0]
    doc = textwrap.indent(f'"""{text}\n\n>>> {example}\n"""', "    ")
    prompt = f"def {signature}:\n{doc}\n"
    lines = tuple(line.strip() for line in tests.strip().splitlines())
    check = _RAISES + "def check(f):\n" + "".join(f"    assert {line}\n" for line in lines)
    task = CodeTask(
        f"ordercode/{name}",
        prompt=prompt,
        entry_point=name,
        tests=check,
        canonical=_body(right),
        labels=(("band", band),),
    )
    return OrderTask(task, band, lines, tuple(map(_body, wrong)))


def _body(code: str) -> str:
    return textwrap.indent(textwrap.dedent(code).strip("\n"), "    ") + "\n"


EASY = (
    order_task(
        "easy", "refund_open(delivered, today)",
        "Days are numbers. A refund is open up to and including 30 days after delivery.",
        "refund_open(1, 31)\nTrue",
        "return today - delivered <= 30",
        "f(0, 30) is True\nf(0, 31) is False\nf(5, 5) is True\nf(20, 45) is True",
        "return today - delivered < 30", "return today <= 30 or delivered == today - 31",
        "return today - delivered <= 30 and today != delivered",
    ),
    order_task(
        "easy", "late_credit(days_late)",
        "Late delivery earns 2 per day late, at most 10. Early delivery earns 0.",
        "late_credit(3)\n6",
        "return min(10, 2 * max(0, days_late))",
        "f(3) == 6\nf(9) == 10\nf(-4) == 0\nf(5) == 10",
        "return 2 * days_late", "return min(10, 2 * days_late)", "return min(8, 2 * max(0, days_late))",
        "return 10 if days_late > 1 else 0",
    ),
    order_task(
        "easy", "route_return(reason)",
        "Send 'damaged' to 'inspection', 'wrong item' to 'restock', anything else to 'review'.\n"
        "    Case and spaces around the reason do not matter.",
        "route_return('Damaged ')\n'inspection'",
        "return {'damaged': 'inspection', 'wrong item': 'restock'}.get(reason.strip().lower(), 'review')",
        "f(' DAMAGED') == 'inspection'\nf('wrong item') == 'restock'\nf('late') == 'review'",
        "return {'damaged': 'inspection', 'wrong item': 'restock'}.get(reason, 'review')",
        "return 'inspection' if 'damaged' in reason.lower() else 'review'",
        "return 'inspection' if 'damaged' in reason.lower() else 'restock'",
    ),
    order_task(
        "easy", "order_total(lines)",
        "Lines are (quantity, unit price in cents). Return the total in cents.",
        "order_total([(2, 150)])\n300",
        "return sum(quantity * price for quantity, price in lines)",
        "f([(2, 150), (1, 99)]) == 399\nf([]) == 0",
        "return sum(price for _, price in lines)", "return max(q * p for q, p in lines)",
        "return lines[0][0] * lines[0][1]",
    ),
    order_task(
        "easy", "free_shipping(total, member)",
        "Shipping is free from 5000 cents on, and for members from 2500 cents on.",
        "free_shipping(2500, True)\nTrue",
        "return total >= (2500 if member else 5000)",
        "f(5000, False) is True\nf(4999, False) is False\nf(2500, True) is True\nf(2499, True) is False",
        "return total > (2500 if member else 5000)", "return member or total >= 5000",
        "return total >= 2500",
    ),
    order_task(
        "easy", "backorder_ships(today, lead_days, closed)",
        "A back-ordered item ships lead_days from today; if that day is in closed, on the next day\n"
        "    that is not.",
        "backorder_ships(1, 2, [3])\n4",
        "day = today + lead_days\nwhile day in closed:\n    day += 1\nreturn day",
        "f(1, 2, [3]) == 4\nf(1, 2, [3, 4]) == 5\nf(1, 2, [2]) == 3",
        "return today + lead_days", "day = today + lead_days\nreturn day + 1 if day in closed else day",
        "return today + lead_days + len(closed)",
    ),
    order_task(
        "easy", "valid_order_number(text)",
        "An order number is 'O-' and exactly six digits 0 to 9.",
        "valid_order_number('O-123456')\nTrue",
        "import re\nreturn re.fullmatch('O-[0-9]{6}', text) is not None",
        "f('O-123456') is True\nf('O-1234567') is False\nf('O-12345a') is False\nf('o-123456') is False\n"
        "f('O-123456\\n') is False",
        "return text.startswith('O-') and text[2:].isdigit()",
        "import re\nreturn re.match('O-[0-9]{6}', text) is not None",
        "import re\nreturn re.match('O-[0-9]{6}$', text) is not None",
        "return len(text) == 8 and text[:2].upper() == 'O-' and text[2:].isdigit()",
        "return text[:2] == 'O-' and len(text) == 8", "return False",
    ),
    order_task(
        "easy", "units_left(stock, reserved, ordered)",
        "How many of the ordered units can be promised from stock that is not reserved? Never below 0.",
        "units_left(10, 4, 8)\n6",
        "return max(0, min(ordered, stock - reserved))",
        "f(10, 4, 8) == 6\nf(10, 4, 3) == 3\nf(3, 5, 2) == 0",
        "return min(ordered, stock)", "return min(ordered, stock - reserved)",
        "return max(0, stock - reserved)",
    ),
    order_task(
        "easy", "latest_status(scans)",
        "Scans are (time, status) in any order. Return the status of the latest, or 'unknown'.",
        "latest_status([(2, 'out'), (1, 'in')])\n'out'",
        "return max(scans)[1] if scans else 'unknown'",
        "f([(2, 'out'), (1, 'in')]) == 'out'\nf([]) == 'unknown'\nf([(1, 'in'), (5, 'done')]) == 'done'",
        "return scans[-1][1] if scans else 'unknown'", "return max(scans)[1]",
        "return scans[0][1] if scans else 'unknown'",
    ),
    order_task(
        "easy", "gift_wrap_fee(items)",
        "Wrapping costs 300 for the first item and 100 for each further one; nothing for no items.",
        "gift_wrap_fee(3)\n500",
        "return 0 if items == 0 else 300 + 100 * (items - 1)",
        "f(0) == 0\nf(1) == 300\nf(3) == 500",
        "return 300 + 100 * (items - 1)", "return 0 if items == 0 else 300 + 100 * items",
        "return 300 * min(items, 1)",
    ),
)  # fmt: skip


MIDDLE = (
    order_task(
        "middle", "partial_refund(paid, returned, bought)",
        "Refund paid * returned / bought cents, half a cent rounded up. Use whole numbers only.",
        "partial_refund(101, 1, 2)\n51",
        "return (2 * paid * returned + bought) // (2 * bought)",
        "f(101, 1, 2) == 51\nf(100, 1, 3) == 33\nf(1001, 1, 2) == 501\nf(100, 2, 3) == 67\n"
        "f(10**18 + 1, 1, 1) == 10**18 + 1",
        "return paid * returned // bought", "return round(paid * returned / bought)",
        "return -(-paid * returned // bought)", "return int(paid * returned / bought + 0.5)",
    ),
    order_task(
        "middle", "dedupe_scans(scans)",
        "Scans are (parcel, place, minute), in order of time. Drop a scan when the last kept scan of\n"
        "    the same parcel was at the same place at most 5 minutes before.",
        "dedupe_scans([('a', 'hub', 0), ('a', 'hub', 5)])\n[('a', 'hub', 0)]",
        "kept, last = [], {}\nfor parcel, place, minute in scans:\n    known = last.get(parcel)\n"
        "    if known and known[0] == place and minute - known[1] <= 5:\n        continue\n"
        "    last[parcel] = (place, minute)\n    kept.append((parcel, place, minute))\nreturn kept",
        "f([('a', 'h', 0), ('a', 'h', 5)]) == [('a', 'h', 0)]\n"
        "f([('a', 'h', 0), ('a', 'h', 6)]) == [('a', 'h', 0), ('a', 'h', 6)]\n"
        "f([('a', 'h', 0), ('b', 'h', 1), ('a', 'h', 2)]) == [('a', 'h', 0), ('b', 'h', 1)]\n"
        "f([('a', 'h', 0), ('a', 'h', 4), ('a', 'h', 8)]) == [('a', 'h', 0), ('a', 'h', 8)]\n"
        "f([('a', 'h', 0), ('a', 'x', 1), ('a', 'h', 2)]) == [('a', 'h', 0), ('a', 'x', 1), ('a', 'h', 2)]",
        "return list(dict.fromkeys(scans))",
        "last, out = {}, []\nfor p, w, m in scans:\n    if last.get(p) != w:\n        out.append((p, w, m))\n    last[p] = w\nreturn out",
        "out = []\nfor s in scans:\n    if out and out[-1][:2] == s[:2] and s[2] - out[-1][2] <= 5:\n"
        "        continue\n    out.append(s)\nreturn out",
        "seen, out = {}, []\nfor s in scans:\n    if s[:2] in seen and s[2] - seen[s[:2]] <= 5:\n"
        "        continue\n    seen[s[:2]] = s[2]\n    out.append(s)\nreturn out",
        "last, out = {}, []\nfor p, w, m in scans:\n    if p not in last or last[p][0] != w or m - last[p][1] > 5:\n"
        "        out.append((p, w, m))\n    last[p] = (w, m)\nreturn out",
        "last, out = {}, []\nfor p, w, m in scans:\n    if p in last and last[p][0] == w and m - last[p][1] < 5:\n"
        "        continue\n    last[p] = (w, m)\n    out.append((p, w, m))\nreturn out",
    ),
    order_task(
        "middle", "split_shipment(items, limit)",
        "Put weights into parcels in the given order: a new parcel begins when the next item would\n"
        "    take the present one over limit. An item above limit travels alone.",
        "split_shipment([3, 3, 5], 6)\n[[3, 3], [5]]",
        "parcels, weight = [], 0\nfor item in items:\n    if not parcels or weight + item > limit:\n"
        "        parcels.append([])\n        weight = 0\n    parcels[-1].append(item)\n    weight += item\nreturn parcels",
        "f([3, 3, 5], 6) == [[3, 3], [5]]\nf([], 6) == []\nf([9, 1], 6) == [[9], [1]]\nf([1, 9, 1], 6) == [[1], [9], [1]]",
        "out = [[]]\nfor i in items:\n    if sum(out[-1]) + i > limit:\n        out.append([])\n    out[-1].append(i)\nreturn out",
        "out = []\nfor i in items:\n    if not out or sum(out[-1]) + i >= limit:\n        out.append([])\n    out[-1].append(i)\nreturn out",
        "out = []\nfor i in sorted(items):\n    if not out or sum(out[-1]) + i > limit:\n        out.append([])\n    out[-1].append(i)\nreturn out",
    ),
    order_task(
        "middle", "apply_coupons(total, percents, floor)",
        "Apply percentage coupons one after the other to cents, rounding down each time, but never\n"
        "    below floor. A total already below floor stays as it is.",
        "apply_coupons(1000, [10, 10], 0)\n810",
        "lowest = min(total, floor)\nfor percent in percents:\n    total = max(lowest, total * (100 - percent) // 100)\nreturn total",
        "f(1000, [10, 10], 0) == 810\nf(1000, [50], 600) == 600\nf(500, [50], 600) == 500\nf(995, [10], 0) == 895\nf(7, [], 0) == 7",
        "return max(floor, total * (100 - sum(percents)) // 100)",
        "for p in percents:\n    total = total * (100 - p) // 100\nreturn max(floor, total)",
        "for p in percents:\n    total = total * (100 - p) / 100\nreturn int(total)",
        "low = min(total, floor)\nx = total\nfor p in percents:\n    x = x * (100 - p) / 100\nreturn max(low, round(x))",
        "return total - 1",
    ),
    order_task(
        "middle", "business_days_between(start, end, closed)",
        "Days are numbers, 0 a Monday, and weeks have 7. Count the days after start up to and\n"
        "    including end that are Monday to Friday and not in closed.",
        "business_days_between(0, 7, [])\n5",
        "return sum(day % 7 < 5 and day not in closed for day in range(start + 1, end + 1))",
        "f(0, 7, []) == 5\nf(0, 4, [2]) == 3\nf(4, 6, []) == 0\nf(0, 7, [5]) == 5\nf(3, 3, []) == 0",
        "return sum(d % 7 < 5 for d in range(start + 1, end + 1))",
        "return sum(d % 7 < 5 and d not in closed for d in range(start, end + 1))",
        "return sum(d % 7 < 5 and d not in closed for d in range(start, end))",
        "return sum(d % 7 < 5 for d in range(start + 1, end + 1)) - len(closed)",
    ),
    order_task(
        "middle", "allocate_stock(stock, orders)",
        "Orders are (id, quantity) by time. Fill each whole order if stock is left for it, else skip\n"
        "    it. Return the ids that are filled.",
        "allocate_stock(5, [('a', 3), ('b', 4), ('c', 2)])\n['a', 'c']",
        "filled = []\nfor name, quantity in orders:\n    if quantity <= stock:\n        stock -= quantity\n        filled.append(name)\nreturn filled",
        "f(5, [('a', 3), ('b', 4), ('c', 2)]) == ['a', 'c']\nf(4, [('a', 3), ('b', 1)]) == ['a', 'b']\nf(0, [('a', 1)]) == []",
        "out = []\nfor n, q in orders:\n    if q > stock:\n        break\n    stock -= q\n    out.append(n)\nreturn out",
        "out = []\nfor n, q in orders:\n    if q < stock:\n        stock -= q\n        out.append(n)\nreturn out",
        "return [n for n, q in orders if q <= max(stock, 1)]",
    ),
    order_task(
        "middle", "merge_carts(first, second)",
        "Carts map items to quantities. Add the second to a copy of the first; no item goes above 10,\n"
        "    and items with quantity 0 or less are left out.",
        "merge_carts({'a': 9}, {'a': 3})\n{'a': 10}",
        "merged = dict(first)\nfor item, quantity in second.items():\n    merged[item] = merged.get(item, 0) + quantity\n"
        "return {item: min(10, quantity) for item, quantity in merged.items() if quantity > 0}",
        "f({'a': 9}, {'a': 3}) == {'a': 10}\nf({'a': 1}, {'b': 2}) == {'a': 1, 'b': 2}\nf({'a': 1}, {'a': -1}) == {}\nf({'a': 12}, {}) == {'a': 10}",
        "return {**first, **second}",
        "m = dict(first)\nfor i, q in second.items():\n    m[i] = min(10, m.get(i, 0) + q)\nreturn m",
        "m = dict(first)\nfor i in second:\n    m[i] = m.get(i, 0) + second[i]\nreturn {i: q for i, q in m.items() if q > 0}",
        "return {i: min(10, q + second.get(i, 0)) for i, q in first.items() if q + second.get(i, 0) > 0}",
    ),
    order_task(
        "middle", "delivery_window(ready, cutoff, transit)",
        "Times are (day, hour). An order ready before the cutoff hour leaves that day, otherwise the\n"
        "    next. Return the first and last day of delivery: transit days later, and one more.",
        "delivery_window((1, 9), 14, 2)\n(3, 4)",
        "day, hour = ready\nleaves = day if hour < cutoff else day + 1\nreturn (leaves + transit, leaves + transit + 1)",
        "f((1, 9), 14, 2) == (3, 4)\nf((1, 14), 14, 2) == (4, 5)\nf((1, 20), 14, 0) == (2, 3)",
        "d, h = ready\ns = d if h <= cutoff else d + 1\nreturn (s + transit, s + transit + 1)",
        "return (ready[0] + transit, ready[0] + transit + 1)",
        "d, h = ready\ns = d if h < cutoff else d + 1\nreturn (s + transit, s + transit)",
    ),
    order_task(
        "middle", "fraud_hold(orders, limit)",
        "Orders are (customer, amount) by time. Return customers, each once and in order, at the\n"
        "    moment their running sum first goes above limit.",
        "fraud_hold([('a', 60), ('b', 10), ('a', 50)], 100)\n['a']",
        "sums, held = {}, []\nfor customer, amount in orders:\n    sums[customer] = sums.get(customer, 0) + amount\n"
        "    if sums[customer] > limit and customer not in held:\n        held.append(customer)\nreturn held",
        "f([('a', 60), ('b', 10), ('a', 50)], 100) == ['a']\nf([('a', 100)], 100) == []\nf([('b', 101), ('a', 200), ('b', 5)], 100) == ['b', 'a']",
        "return [c for c, amount in orders if amount > limit]",
        "s, h = {}, []\nfor c, a in orders:\n    s[c] = s.get(c, 0) + a\n    if s[c] >= limit and c not in h:\n        h.append(c)\nreturn h",
        "s = {}\nfor c, a in orders:\n    s[c] = s.get(c, 0) + a\nreturn sorted(c for c in s if s[c] > limit)",
    ),
    order_task(
        "middle", "loyalty_points(orders)",
        "Orders are (cents, returned). One point per full 100 cents of each order that was not\n"
        "    returned, and 5 more for every third such order.",
        "loyalty_points([(250, False), (100, True)])\n2",
        "kept = [cents for cents, returned in orders if not returned]\nreturn sum(c // 100 for c in kept) + 5 * (len(kept) // 3)",
        "f([(250, False), (100, True)]) == 2\nf([(150, False), (150, False)]) == 2\nf([(0, False)] * 3) == 5\nf([(0, False)] * 7) == 10\nf([(0, False), (0, False), (0, True)]) == 0",
        "return sum(c // 100 for c, r in orders if not r)",
        "k = [c for c, r in orders if not r]\nreturn sum(k) // 100 + 5 * (len(k) // 3)",
        "k = [c for c, r in orders if not r]\nreturn sum(c // 100 for c in k) + 5 * (len(orders) // 3)",
        "k = [c for c, r in orders if not r]\nreturn sum(c // 100 for c in k) + (5 if len(k) >= 3 else 0)",
        "return sum(c // 100 for c, r in orders)",
    ),
)  # fmt: skip


HARD = (
    order_task(
        "hard", "spread_discount(prices, discount)",
        "Spread a discount in cents over prices in proportion, rounded down, then give the cents left\n"
        "    over one by one to the first prices. Return the discounts.",
        "spread_discount([100, 100, 100], 100)\n[34, 33, 33]",
        "total = sum(prices)\nshares = [discount * price // total for price in prices]\n"
        "for index in range(discount - sum(shares)):\n    shares[index] += 1\nreturn shares",
        "f([100, 100, 100], 100) == [34, 33, 33]\nf([1, 1, 1], 2) == [1, 1, 0]\nf([300, 100], 40) == [30, 10]",
        "return [discount * p // sum(prices) for p in prices]",
        "return [round(discount * p / sum(prices)) for p in prices]",
        "s = [discount * p // sum(prices) for p in prices]\ns[0] += discount - sum(s)\nreturn s",
        "n = len(prices)\nreturn [discount // n + (i < discount % n) for i in range(n)]",
    ),
    order_task(
        "hard", "overlapping_slots(slots)",
        "Slots are (start, end) with end outside. Return the largest number in use at one time.",
        "overlapping_slots([(0, 2), (1, 3), (3, 4)])\n2",
        "events = sorted([(start, 1) for start, _ in slots] + [(end, -1) for _, end in slots])\n"
        "most = now = 0\nfor _, change in events:\n    now += change\n    most = max(most, now)\nreturn most",
        "f([(0, 2), (1, 3), (3, 4)]) == 2\nf([(0, 1), (1, 2)]) == 1\nf([]) == 0\nf([(0, 9), (1, 2), (3, 4)]) == 2",
        "return len(slots)",
        "return max(sum(a <= s <= b for a, b in slots) for s, _ in slots) if slots else 0",
        "return max(sum(a < t and s < b for a, b in slots) for s, t in slots) if slots else 0",
        "return max(sum(a <= s < b for a, b in slots) for s, _ in slots)",
    ),
    order_task(
        "hard", "settle_refunds(payments, refund)",
        "Payments are (method, amount) in order. Refund the latest payment first, never more than was\n"
        "    paid. Return (method, amount) pairs; amounts of 0 are left out.",
        "settle_refunds([('card', 50), ('gift', 30)], 40)\n[('gift', 30), ('card', 10)]",
        "out = []\nfor method, amount in reversed(payments):\n    part = min(amount, refund)\n    if part > 0:\n"
        "        out.append((method, part))\n    refund -= part\nreturn out",
        "f([('c', 50), ('g', 30)], 40) == [('g', 30), ('c', 10)]\nf([('c', 5)], 9) == [('c', 5)]\nf([('c', 5), ('g', 5)], 5) == [('g', 5)]",
        "out = []\nfor m, a in payments:\n    p = min(a, refund)\n    if p > 0:\n        out.append((m, p))\n    refund -= p\nreturn out",
        "out = []\nfor m, a in reversed(payments):\n    p = min(a, refund)\n    out.append((m, p))\n    refund -= p\nreturn out",
        "return [(payments[-1][0], refund)]",
    ),
    order_task(
        "hard", "pick_warehouse(need, stock, distance)",
        "stock maps warehouses to {item: quantity}. Return the nearest one that has all of need, ties\n"
        "    by name, or None.",
        "pick_warehouse({'a': 1}, {'x': {'a': 1}}, {'x': 3})\n'x'",
        "able = [name for name, has in stock.items() if all(has.get(i, 0) >= q for i, q in need.items())]\n"
        "return min(able, key=lambda name: (distance[name], name), default=None)",
        "f({'a': 1}, {'x': {'a': 1}, 'y': {'a': 5}}, {'x': 3, 'y': 2}) == 'y'\n"
        "f({'a': 1}, {'y': {'a': 1}, 'x': {'a': 1}}, {'x': 2, 'y': 2}) == 'x'\n"
        "f({'a': 2, 'b': 1}, {'x': {'a': 2}, 'y': {'a': 2, 'b': 1}}, {'x': 1, 'y': 9}) == 'y'\n"
        "f({'a': 9}, {'x': {'a': 1}}, {'x': 1}) is None",
        "return min(stock, key=lambda n: (distance[n], n), default=None)",
        "g = [n for n, h in stock.items() if all(h.get(i, 0) >= q for i, q in need.items())]\nreturn min(g, key=lambda n: distance[n], default=None)",
        "g = [n for n, h in stock.items() if any(h.get(i, 0) >= q for i, q in need.items())]\nreturn min(g, key=lambda n: (distance[n], n), default=None)",
        "g = [n for n, h in stock.items() if all(h.get(i, 0) >= q for i, q in need.items())]\nreturn min(g, default=None)",
    ),
    order_task(
        "hard", "order_state(events)",
        "Follow events from 'new': pay takes new to paid, ship takes paid to shipped, return takes shipped\n"
        "    to returned, cancel takes new or paid to cancelled. Any other event raises ValueError.",
        "order_state(['pay', 'ship'])\n'shipped'",
        "moves = {('new', 'pay'): 'paid', ('paid', 'ship'): 'shipped', ('shipped', 'return'): 'returned',\n"
        "         ('new', 'cancel'): 'cancelled', ('paid', 'cancel'): 'cancelled'}\nstate = 'new'\nfor event in events:\n"
        "    if (state, event) not in moves:\n        raise ValueError(event)\n    state = moves[state, event]\nreturn state",
        "f([]) == 'new'\nf(['pay', 'ship', 'return']) == 'returned'\nf(['pay', 'cancel']) == 'cancelled'\nf(['cancel']) == 'cancelled'\nraises(f, ['ship'])\nraises(f, ['pay', 'ship', 'cancel'])",
        "names = {'pay': 'paid', 'ship': 'shipped', 'return': 'returned', 'cancel': 'cancelled'}\nreturn names[events[-1]] if events else 'new'",
        "m = {('new', 'pay'): 'paid', ('paid', 'ship'): 'shipped', ('shipped', 'return'): 'returned', ('new', 'cancel'): 'cancelled'}\ns = 'new'\nfor e in events:\n    s = m.get((s, e), s)\nreturn s",
        "m = {('new', 'pay'): 'paid', ('paid', 'ship'): 'shipped', ('shipped', 'cancel'): 'cancelled', ('paid', 'cancel'): 'cancelled'}\ns = 'open'[:0] or 'new'\nfor e in events:\n    if (s, e) not in m:\n        raise ValueError(e)\n    s = m[s, e]\nreturn s if events else 'open'",
    ),
    order_task(
        "hard", "reorder_points(sales, lead, safety)",
        "sales maps items to daily sales. The reorder point is the mean daily sales times lead, rounded\n"
        "    up, plus safety. Items without sales days are left out.",
        "reorder_points({'a': [1, 2]}, 3, 1)\n{'a': 6}",
        "return {item: -(-sum(days) * lead // len(days)) + safety for item, days in sales.items() if days}",
        "f({'a': [1, 2]}, 3, 1) == {'a': 6}\nf({'a': []}, 3, 1) == {}\nf({'a': [1, 1, 2]}, 1, 0) == {'a': 2}\nf({'a': [2]}, 2, 0) == {'a': 4}",
        "return {i: sum(d) * lead // len(d) + safety for i, d in sales.items() if d}",
        "return {i: (-(-sum(d) * lead // len(d)) if d else 0) + safety for i, d in sales.items()}",
        "return {i: -(-sum(d) // len(d)) * lead + safety for i, d in sales.items() if d}",
        "return {i: sum(d) * lead // len(d) + 1 + safety for i, d in sales.items() if d}",
    ),
    order_task(
        "hard", "return_rate_alerts(events, window, limit)",
        "Events are (day, is_return) by day. Return the days on which returns in the last window days,\n"
        "    that day included, reach limit; each day once.",
        "return_rate_alerts([(1, True), (2, True)], 2, 2)\n[2]",
        "out = []\nfor day, _ in events:\n    count = sum(r for d, r in events if day - window < d <= day)\n"
        "    if count >= limit and day not in out:\n        out.append(day)\nreturn out",
        "f([(1, True), (2, True)], 2, 2) == [2]\nf([(1, True), (3, True)], 2, 2) == []\nf([(1, True), (1, True)], 1, 2) == [1]\nf([(1, True), (1, False), (2, False)], 2, 1) == [1, 2]",
        "out = []\nfor day, _ in events:\n    if sum(r for d, r in events if day - window <= d <= day) >= limit and day not in out:\n        out.append(day)\nreturn out",
        "out = []\nfor day, _ in events:\n    if sum(r for d, r in events if day - window < d <= day) > limit and day not in out:\n        out.append(day)\nreturn out",
        "return [day for day, _ in events if sum(r for d, r in events if day - window < d <= day) >= limit]",
    ),
    order_task(
        "hard", "bundle_price(cart, prices, bundles)",
        "Bundles are (items, price). Use a bundle as often as it fits, in the given order of bundles,\n"
        "    and charge the rest one by one. cart maps items to quantities and is not changed.",
        "bundle_price({'a': 2, 'b': 1}, {'a': 5, 'b': 4}, [(('a', 'b'), 7)])\n12",
        "left, total = dict(cart), 0\nfor items, price in bundles:\n    times = min(left.get(i, 0) // items.count(i) for i in items)\n"
        "    for item in items:\n        left[item] = left.get(item, 0) - times\n    total += times * price\nreturn total + sum(prices[i] * q for i, q in left.items() if q)",
        "f({'a': 2, 'b': 1}, {'a': 5, 'b': 4}, [(('a', 'b'), 7)]) == 12\nf({'a': 4, 'b': 2}, {'a': 5, 'b': 4}, [(('a', 'b'), 7)]) == 24\n"
        "f({'a': 3}, {'a': 5}, [(('a', 'a'), 8)]) == 13\nf({'a': 1}, {'a': 5}, [(('a', 'b'), 7)]) == 5",
        "return sum(prices[i] * q for i, q in cart.items())",
        "left, total = dict(cart), 0\nfor items, price in bundles:\n    if all(left.get(i, 0) for i in items):\n        total += price\n        for i in items:\n            left[i] -= 1\nreturn total + sum(prices[i] * q for i, q in left.items())",
        "left, total = dict(cart), 0\nfor items, price in bundles:\n    t = min(left.get(i, 0) for i in items)\n    for i in set(items):\n        left[i] = left.get(i, 0) - t\n    total += t * price\nreturn total + sum(prices[i] * q for i, q in left.items() if q)",
        "t = min(cart.get('a', 0), cart.get('b', 1))\nreturn t * bundles[0][1] + sum(prices[i] * (q - t) for i, q in cart.items())",
    ),
    order_task(
        "hard", "customs_groups(parcels, limit)",
        "Parcels are (receiver, value). Parcels of one receiver are declared together when their values\n"
        "    sum to more than limit, else each alone. Return sorted (receiver, values) with values sorted.",
        "customs_groups([('a', 5), ('a', 6)], 10)\n[('a', [5, 6])]",
        "by = {}\nfor receiver, value in parcels:\n    by.setdefault(receiver, []).append(value)\nout = []\n"
        "for receiver, values in by.items():\n    out += [(receiver, sorted(values))] if sum(values) > limit else [(receiver, [v]) for v in values]\nreturn sorted(out)",
        "f([('a', 6), ('a', 5)], 10) == [('a', [5, 6])]\nf([('a', 5), ('a', 5)], 10) == [('a', [5]), ('a', [5])]\nf([('b', 1), ('a', 2)], 10) == [('a', [2]), ('b', [1])]",
        "by = {}\nfor r, v in parcels:\n    by.setdefault(r, []).append(v)\nreturn sorted((r, sorted(v)) for r, v in by.items())",
        "by = {}\nfor r, v in parcels:\n    by.setdefault(r, []).append(v)\nout = []\nfor r, vs in by.items():\n    out += [(r, vs)] if sum(vs) > limit else [(r, [v]) for v in vs]\nreturn sorted(out)",
        "by = {}\nfor r, v in parcels:\n    by.setdefault(r, []).append(v)\nout = []\nfor r, vs in by.items():\n    out += [(r, sorted(vs))] if sum(vs) > limit else [(r, [v]) for v in vs]\nreturn out",
    ),
    order_task(
        "hard", "rank_support(tickets, now)",
        "Tickets are (id, priority 1 to 3, opened). Highest priority first, but a ticket open for more\n"
        "    than 24 hours counts one priority higher, at most 3; then the oldest; then the id.",
        "rank_support([('a', 1, 0), ('b', 2, 9)], 10)\n['b', 'a']",
        "def key(ticket):\n    name, priority, opened = ticket\n    raised = min(3, priority + (now - opened > 24))\n"
        "    return (-raised, opened, name)\nreturn [ticket[0] for ticket in sorted(tickets, key=key)]",
        "f([('a', 1, 0), ('b', 2, 9)], 10) == ['b', 'a']\nf([('a', 1, 0), ('b', 2, 20)], 25) == ['a', 'b']\nf([('a', 1, 1), ('b', 2, 20)], 25) == ['b', 'a']\n"
        "f([('b', 3, 0), ('a', 3, 0)], 9) == ['a', 'b']\nf([('a', 3, 50), ('b', 3, 0)], 60) == ['b', 'a']\nf([('z', 3, 1), ('a', 2, 0)], 30) == ['a', 'z']",
        "return [t[0] for t in sorted(tickets, key=lambda t: (-t[1], t[2], t[0]))]",
        "return [t[0] for t in sorted(tickets, key=lambda t: (-min(3, t[1] + (now - t[2] >= 24)), t[2], t[0]))]",
        "return [t[0] for t in sorted(tickets, key=lambda t: (-(t[1] + (now - t[2] > 24)), t[0]))]",
        "return [t[0] for t in sorted(tickets, key=lambda t: (-min(3, t[1] + (now - t[2] > 24)), -t[2]))]",
        "return sorted(t[0] for t in tickets)",
    ),
)  # fmt: skip


ORDER_TASKS: tuple[OrderTask, ...] = (*EASY, *MIDDLE, *HARD)
_LIKELY = {"easy": 2.5, "middle": 1.2, "hard": 0.2}
"""How much likelier a demo coder finds the right program than each wrong one, as a logarithm."""


def ordercode() -> CodeSuite:
    """The suite."""
    return CodeSuite.of("code:ordercode", (order_task.task for order_task in ORDER_TASKS))


def demo_samples(
    generator: np.random.Generator, temperature: float = 1.0, attempts: int = 4
) -> list[dict[str, str]]:
    """Samples of a coder that needs no model: right or plausibly wrong, by temperature.

    At temperature 0 it always writes what it finds likeliest, the right program; the higher the
    temperature, the less it prefers it.
    """
    samples: list[dict[str, str]] = []
    for order_task in ORDER_TASKS:
        programs = [order_task.task.canonical, *order_task.wrong]
        odds = np.zeros(len(programs))
        odds[0] = _LIKELY[order_task.band] / max(temperature, 1e-9)
        chances = np.exp(odds - odds.max())
        choices = generator.choice(len(programs), attempts, p=chances / chances.sum())
        samples += [
            {"task_id": order_task.task.id, "completion": programs[choice]}
            for choice in choices.tolist()
        ]
    return samples
