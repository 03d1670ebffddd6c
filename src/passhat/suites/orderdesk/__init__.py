"""orderdesk: a service desk with its own customers, policy, tools and records.

Two domains, ``retail`` and ``airline``. Every attempt gets a fresh copy of the records and a
scripted user; the reward looks at what has become of the records and at what the user was told.
"""

from passhat.suites.orderdesk.suite import OrderdeskSuite

__all__ = ["OrderdeskSuite"]
