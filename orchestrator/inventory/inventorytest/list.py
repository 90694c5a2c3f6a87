"""Runs `ansible-inventory --list` once for each file, into FILE.out.

The command's own code runs for all of them in this process, so that importing
Ansible, which is most of what it costs, happens once.
"""
import contextlib
import sys

from ansible.cli.inventory import InventoryCLI
from ansible.utils.context_objects import GlobalCLIArgs

for path in sys.argv[1:]:
    # What the command line says is kept for the life of a process.
    GlobalCLIArgs._Singleton__instance = None
    with open(path + ".out", "w", encoding="utf-8", newline="") as out, contextlib.redirect_stdout(out):
        try:
            status = InventoryCLI(["ansible-inventory", "-i", path, "--list"]).run()
        except SystemExit as end:
            status = end.code
    if status:
        sys.exit("ansible-inventory failed on " + path)
