"""Adapters to other systems. Each needs an extra; the core imports none of them."""
