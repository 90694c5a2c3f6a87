#!/usr/bin/python3
"""An inventory script over `tofu show -json`, as people write it for themselves.

It is here to be compared with exocomp-inventory (`make bench`), not to be used:
it runs tofu at every start of Ansible, reads a whole state with its secrets, and
knows neither tf:<workspace> nor a template from data. TOFU_DIR names the
configuration, whose output `hosts` is a map of host names to variables.
"""
import json
import os
import subprocess
import sys

show = ["tofu", "-chdir=" + os.environ["TOFU_DIR"], "show", "-json"]
state = json.loads(subprocess.run(show, check=True, stdout=subprocess.PIPE).stdout)
hosts = state["values"]["outputs"]["hosts"]["value"]
json.dump({"_meta": {"hostvars": hosts}, "edge": {"hosts": sorted(hosts)}}, sys.stdout)
