#!/usr/bin/env bash
# The gate of the chain: apply, SSH wait, onboard, play, end to end.
#
#   test/e2e/provision-converge-gate.sh [PATTERN]
#
# It builds what `make build` builds if it is missing or older than the
# sources, runs the tests TestGate… and TestLongGate… of this directory (or those
# that PATTERN, a regular expression for their names, selects) with the real binaries, OpenTofu,
# ansible-playbook and sshd on hosts in network namespaces, and prints a line for
# each assertion:
#
#   ok    Chain: the pin was recorded before anything was pushed
#   FAIL  Chain: passwordless sudo works
#
# What is not there to be tested with, Terraform, is skipped and named at the end.
#
# Exit code 0 if every assertion holds; else 1, after everything that the failed
# tests said. It needs root, and the tools that `make setup` installs. Nothing of
# it stays: hosts, daemons and scratch directories end with it, also when it is
# interrupted.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
[ "$(id -u)" -eq 0 ] || { echo "the gate makes network namespaces: run it as root" >&2; exit 1; }

# The tools are where the makefile looks for them.
cache=$(tools/where cache)
PATH=$cache/bin:$(dirname "$(tools/where go)"):$PATH:/usr/sbin:/sbin
export PATH

for tool in tofu ansible-playbook ansible-inventory sshd ip sudo; do
	command -v "$tool" >/dev/null || { echo "the gate needs $tool: run make setup" >&2; exit 1; }
done

stale() {
	[ ! -x "$1" ] || [ -n "$(find orchestrator provider inventory-plugin proto seeds go.mod go.sum -newer "$1" -print -quit)" ]
}
if stale bin/exocomp || stale bin/exocomp-test || stale bin/exocomp-inventory || stale bin/terraform-provider-exocomp; then
	make build >&2
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A line of go test belongs to the test that the last "===" line names.
assertions='
	/^=== (RUN|CONT|NAME) / { test = $3; sub(/^Test(Long)?Gate/, "", test) }
	match($0, /: holds: /) { print "ok    " test ": " substr($0, RSTART + RLENGTH); fflush() }
	match($0, /: does not hold: /) { print "FAIL  " test ": " substr($0, RSTART + RLENGTH); fflush() }
	/^--- FAIL: / { name = $3; sub(/^Test(Long)?Gate/, "", name); print "FAIL  " name ", as a whole"; fflush() }
'
status=0
go test -count=1 -timeout 40m -v -tags long -run "^Test(Long)?Gate.*${1:-}" ./test/e2e 2>&1 |
	tee "$log" | awk "$assertions" || status=1
if grep -q 'no tests to run' "$log"; then
	echo "no gate is named TestGate…${1:-}" >&2
	exit 1
fi
if [ "$status" -ne 0 ]; then
	echo >&2
	grep -v -e '^=== ' -e ': holds: ' "$log" >&2
	echo "the gate does not hold" >&2
	exit 1
fi
grep -o 'skipped: .*' "$log" | sort | uniq -c || true
echo "every assertion holds ($(grep -c ': holds: ' "$log"))"
