"""Runs `ansible-inventory --list` once for each file, as FILE.out and FILE.err.

The command's own code runs in a fork a file, so that importing Ansible, which
is most of what it costs, happens once.
"""
import os
import sys

from ansible.cli.inventory import InventoryCLI

for path in sys.argv[1:]:
    pid = os.fork()
    if pid == 0:
        for fd, suffix in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(path + suffix, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), fd)
        status = 1
        try:
            status = InventoryCLI(["ansible-inventory", "-i", path, "--list"]).run()
        except SystemExit as end:
            status = end.code
        except Exception as error:
            print(error, file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status or 0)
    if os.waitpid(pid, 0)[1] != 0:
        sys.exit("ansible-inventory failed on " + path)
