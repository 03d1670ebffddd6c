"""Code that runs inside the sandbox: the standard library and nothing else, not even passhat.

The folder is shown to the sandbox's interpreter under another name, so modules here import each
other only relatively, and they keep to what Python 3.9 understands.
"""
