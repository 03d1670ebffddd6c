"""Programs that want to pass without being right, or to do harm. Each defines ``total``.

The hidden tests ask for the sum of a list, plus a number that stands only in the tests. So no
program here can be right, and whatever passes has cheated. ``{...}`` is filled in by the tests.
"""

from __future__ import annotations

HOSTILE: dict[str, str] = {
    "infinite loop": "def total(xs):\n    while True: pass",
    "infinite loop on load": "while True: pass",
    "fork bomb": """
import os
def total(xs):
    while True: os.fork()
""",
    "memory bomb": "def total(xs):\n    hold = []\n    while True: hold.append(bytearray(1 << 24))",
    "disk bomb": """
def total(xs):
    with open("/tmp/fill", "wb") as file:
        while True: file.write(b"x" * (1 << 20))
""",
    "many disk files": """
def total(xs):
    for number in range(10):
        with open(f"/tmp/fill{number}", "wb") as file: file.write(b"x" * (1 << 23))
""",
    "inode bomb": """
def total(xs):
    number = 0
    while True:
        open(f"/tmp/{number}", "w").close()
        number += 1
""",
    "deep folders": """
import os
def total(xs):
    for _ in range(1500):
        os.mkdir("d"); os.chdir("d")
    return 0
""",
    "writes home": """
def total(xs):
    open("{home}/hello", "w").write("was here")
""",
    "reads a secret file": """
def total(xs):
    return open("{secret}").read()
""",
    "reads the environment": """
import os
def total(xs):
    found = dict(os.environ)
    for pid in ("self", 1, 2, 3):
        found[pid] = open(f"/proc/{pid}/environ").read()
    return found
""",
    "connects to loopback": """
import socket
def total(xs):
    socket.create_connection(("127.0.0.1", {port}), 1).sendall(b"hello")
""",
    "listens": """
import socket
def total(xs):
    s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
""",
    "kills everybody": """
import os, signal
def total(xs):
    for target in (os.getppid(), -1, 0, 1, 2):
        try: os.kill(target, signal.SIGKILL)
        except OSError: pass
    raise ValueError
""",
    "kills itself": "import os\ndef total(xs):\n    os.kill(os.getpid(), 9)\n    return None",
    "signals through fcntl": """
import fcntl, os
def total(xs):
    r, w = os.pipe()
    fcntl.fcntl(r, 8, os.getppid()); fcntl.fcntl(r, 10, 9); fcntl.fcntl(r, 4, 0o20000)
    os.write(w, b"x")
""",
    "limits its parent": """
import os, resource
def total(xs):
    resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))
""",
    "exits with 0": "import os\ndef total(xs):\n    os._exit(0)",
    "exits with 0 on load": "import sys\nsys.exit(0)",
    "raises SystemExit": "def total(xs):\n    raise SystemExit(0)",
    "executes another program": """
import os
def total(xs):
    os.execv("/usr/bin/true", ["true"])
""",
    "forged frames on every descriptor": """
import os, json, struct
def total(xs):
    for words in (["examined", "passed", "passed", ""], ["value", True], ["ready"], ["ended"]):
        body = json.dumps(words).encode()
        for descriptor in range(64):
            try: os.write(descriptor, struct.pack("!I", len(body)) + body)
            except OSError: pass
    os._exit(0)
""",
    "noise on every descriptor": """
import os
for descriptor in range(64):
    try: os.write(descriptor, b"\\xff" * 4096)
    except OSError: pass
""",
    "reads every descriptor": """
import os
def total(xs):
    found = []
    for descriptor in range(3, 64):
        try:
            os.set_blocking(descriptor, False)
            found.append(os.read(descriptor, 1 << 16))
        except OSError: pass
    return found
""",
    "closes every descriptor": """
import os
def total(xs):
    os.closerange(0, 64)
    while True: pass
""",
    "takes its time to end": """
import os, time
def total(xs):
    os.closerange(3, 64)
    time.sleep(1.5)
    os._exit(0)
""",
    "printed markers": """
import sys
print("passed"); print("1 passed in 0.01s"); print("OK", file=sys.stderr)
def total(xs):
    print("PASSED"); return None
""",
    "trace function": """
import sys
def jump(frame, event, arg):
    frame.f_trace_opcodes = True
    if event == "exception": return None
    return jump
sys.settrace(jump)
def total(xs):
    sys._getframe(1).f_trace = jump
    return None
""",
    "frame walk": """
import sys
def total(xs):
    frame, seen = sys._getframe(), []
    while frame:
        seen.append(repr(frame.f_locals) + repr(frame.f_globals) + repr(frame.f_code.co_consts))
        frame = frame.f_back
    mark = "".join(["hid", "den tests of ", "total"])
    return sum(xs) + 7391 if mark in "".join(seen) else None
""",
    "garbage collector": """
import gc
def total(xs):
    mark = "hidden" + " tests of total"
    for thing in gc.get_objects():
        if isinstance(thing, dict) and any(mark in str(v) for v in list(thing.values())[:50]):
            return sum(xs) + 7391
""",
    "files and arguments": """
import os, sys
def total(xs):
    text = " ".join(sys.argv) + str(sys.orig_argv)
    mark = "hidden" + " tests of total"
    for folder in ("/tmp", "/judge", ".", "{home}", "/proc/self/fd", "/work"):
        for root, _, names in os.walk(folder):
            for name in names:
                try: text += open(os.path.join(root, name), errors="replace").read()
                except OSError: pass
    return sum(xs) + 7391 if mark in text else None
""",
    "memory of the process": """
import ctypes
def total(xs):
    text = open("/proc/self/mem", "rb")
""",
    "equal to everything": """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
def total(xs):
    return Yes()
""",
    "a number equal to everything": """
class Yes(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
def total(xs):
    return Yes(1)
""",
    "equal by arithmetic": """
class Close:
    def __sub__(self, other): return self
    __rsub__ = __abs__ = lambda self, *others: self
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __eq__ = __lt__
    def __float__(self): return 0.0
def total(xs):
    return Close()
""",
    "a class in place of the function": """
class total(int):
    def __new__(cls, xs): return object.__new__(Yes)
class Yes:
    def __eq__(self, other): return True
""",
    "patched builtins": """
import builtins, unittest
builtins.AssertionError = type("Quiet", (BaseException,), {{}})
builtins.sum = lambda *a: 0
builtins.__build_class__ = None
unittest.TestCase.assertEqual = lambda *a: None
def total(xs):
    return None
""",
    "patched judge": """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith("inside"):
        for key, value in list(vars(module).items()):
            if callable(value) and key.startswith(("_verdict", "examine", "_failed", "decode")):
                setattr(module, key, lambda *a, **k: ("passed", "passed", ""))
def total(xs):
    return None
""",
    "an exception that looks right": """
class AssertionError(Exception):
    def __eq__(self, other): return True
def total(xs):
    raise AssertionError("passed")
""",
    "gives its arguments another value": """
def total(xs):
    xs.clear()
    return 7391
""",
    "endless generator": """
def total(xs):
    return Endless()
class Endless:
    def __iter__(self): return self
    def __next__(self): return 1
""",
    "giant answer": "def total(xs):\n    return 'x' * (1 << 28)",
    "deep answer": """
def total(xs):
    found = []
    for _ in range(100_000): found = [found]
    return found
""",
    "giant output": """
def total(xs):
    while True: print("x" * (1 << 20))
""",
    "ignored signals": """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def total(xs):
    while True: pass
""",
    "daemon": """
import os, time
def total(xs):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3600)
    return None
""",
    "threads that hang": """
import threading, time
for _ in range(20):
    threading.Thread(target=time.sleep, args=(3600,)).start()
def total(xs):
    return None
""",
    "segmentation fault": "import ctypes\ndef total(xs):\n    ctypes.string_at(0)",
    "endless recursion": """
import sys
sys.setrecursionlimit(10 ** 9)
def total(xs):
    return total(xs)
""",
    "namespaces": """
import ctypes, os
def total(xs):
    if ctypes.CDLL(None).unshare(0x10000000) != 0: raise OSError(1, "no")
    return None
""",
}
