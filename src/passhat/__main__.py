"""``python -m passhat`` is the command ``passhat``."""

from __future__ import annotations

import sys

from passhat.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
