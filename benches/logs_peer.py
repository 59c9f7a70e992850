"""Seconds that a reference parser takes for a log, or `slow` past the limit.

Usage: logs_peer.py V2 PARSER LOG LIMIT_S    (V2: a folder of sources of SWE-rebench V2)
"""

import importlib.util
import signal
import sys
import time
from pathlib import Path

spec = importlib.util.spec_from_file_location("peer", Path(__file__).parent.parent / "scripts/log-parsers-peer.py")
peer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(peer)

v2, name, path, limit = sys.argv[1:]
parse = peer.rebench(Path(v2))[name]
log = Path(path).read_text()
signal.signal(signal.SIGALRM, peer.expire)
signal.setitimer(signal.ITIMER_REAL, float(limit))
began = time.perf_counter()
try:
    parse(log)
except peer.Slow:
    print("slow")
    sys.exit()
except Exception:
    pass
print(time.perf_counter() - began)
