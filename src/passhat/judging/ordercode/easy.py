"""The first band: one rule, and the edge where it turns."""

from __future__ import annotations

from passhat.judging.ordercode.base import order_task

__all__ = ["TASKS"]

TASKS = (
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
