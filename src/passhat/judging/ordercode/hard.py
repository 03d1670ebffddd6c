"""The third band: several rules, order and ties."""

from __future__ import annotations

from passhat.judging.ordercode.base import order_task

__all__ = ["TASKS"]

TASKS = (
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
