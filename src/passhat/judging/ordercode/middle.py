"""The second band: two rules that meet."""

from __future__ import annotations

from passhat.judging.ordercode.base import order_task

__all__ = ["TASKS"]

TASKS = (
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
