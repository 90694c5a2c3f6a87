#!/usr/bin/env bash
# make demo: the main job, end to end, in a scratch directory. It starts a daemon and
# a throwaway host whose sshd comes up late, runs the chain against it, shows what
# happened, does the same to a second host from within `tofu apply`, lets a schedule
# converge a third one that a later apply adds, and removes everything again, also
# when it fails. Needs root.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
# Short, because unix sockets below it have 108 bytes for their path.
dir=$(mktemp -d /tmp/exodemo.XXXXXX)
daemon=''
hosts=() # pids of the throwaway hosts
holds=() # descriptors whose end ends them

cleanup() {
	status=$?
	trap - EXIT INT TERM
	if [ -n "$daemon" ] && kill -0 "$daemon" 2>/dev/null; then
		"$root/bin/exocomp" drain >/dev/null 2>&1 || true
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
	fi
	for fd in "${holds[@]}"; do exec {fd}>&-; done
	for pid in "${hosts[@]}"; do wait "$pid" 2>/dev/null || true; done
	if [ "$status" -ne 0 ] && [ -f "$dir/daemon.log" ]; then
		echo "the demo failed; the daemon's last lines:" >&2
		tail -n 20 "$dir/daemon.log" >&2
	fi
	rm -rf "$dir"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
run() {
	printf '$ exocomp %s\n' "$*"
	"$root/bin/exocomp" "$@"
}

# wait_for FILE TEXT PID: until a process has written TEXT to FILE.
wait_for() {
	for _ in $(seq 600); do
		if grep -q -- "$2" "$1" 2>/dev/null; then return 0; fi
		kill -0 "$3" 2>/dev/null || { cat "$1" >&2; return 1; }
		sleep 0.05
	done
	echo "timed out waiting for $2" >&2
	return 1
}

[ "$(id -u)" -eq 0 ] || { echo "make demo makes a network namespace: run it as root" >&2; exit 1; }

# start_host NAME FLAG...: a throwaway host that lives until the demo ends.
start_host() {
	local name=$1 fd
	mkfifo "$dir/$name.hold"
	"$dir/nethost" run --name "$@" <"$dir/$name.hold" >"$dir/$name.json" 2>"$dir/$name.log" &
	hosts+=($!)
	exec {fd}>"$dir/$name.hold"
	holds+=("$fd")
	wait_for "$dir/$name.json" '}' "${hosts[-1]}"
}

# field HOST NAME: what a throwaway host says of itself.
field() { sed -n "s/.*\"$2\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$dir/$1.json"; }

say "a throwaway host whose sshd comes up late"
(cd "$root" && go build -o "$dir/nethost" ./test/nethost/cmd/nethost)
start_host web1 --late 6s
echo "web1 is at $(field web1 address); its sshd starts in 6 seconds"

say "a daemon in a scratch directory"
cat >"$dir/exocomp.hcl" <<HCL
data_dir    = "$dir/data"
runtime_dir = "$dir/run"
HCL
"$root/bin/exocomp" serve --allow-root --config "$dir/exocomp.hcl" >"$dir/daemon.log" 2>&1 &
daemon=$!
export EXOCOMP_SOCKET=$dir/run/exocomp.sock
wait_for "$dir/daemon.log" 'daemon is ready' "$daemon"
tail -n 1 "$dir/daemon.log"

say "an OpenTofu configuration and a playbook"
mkdir "$dir/infra" "$dir/play"
cat >"$dir/infra/main.tf" <<HCL
resource "terraform_data" "web1" {
  input = "$(field web1 address)"
}

output "hosts" {
  value = {
    web1 = {
      ansible_host               = terraform_data.web1.output
      ansible_user               = "root"
      ansible_python_interpreter = "/usr/bin/python3"
    }
  }
}
HCL
cat >"$dir/play/site.yml" <<'YAML'
- name: Configure the web hosts
  hosts: tf:edge
  tasks:
    - name: Greet
      ansible.builtin.copy:
        content: "converged by exocomp as {{ ansible_user }}\n"
        dest: /etc/motd
        mode: "0644"
YAML
cat "$dir/infra/main.tf" "$dir/play/site.yml"

say "the chain: apply, wait for SSH, pin and onboard, play"
run workspace add edge "$dir/infra"
run provision run edge "$dir/play/site.yml" --ssh-identity "$(field web1 key)" --ssh-wait 1m --wait

say "the ledger's view"
run provision status edge
run inventory show tf:edge

say "the pinned host key, and what the host itself says"
run host known-hosts
echo "the host's own key: $(field web1 fingerprint)"

say "what the play changed on the host, by a login that holds the host to its pin"
on_host() {
	local host=$1
	shift
	ssh -F none -i "$(field "$host" key)" -o IdentitiesOnly=yes -o UserKnownHostsFile="$dir/data/known_hosts" \
		-o StrictHostKeyChecking=yes -o BatchMode=yes "root@$(field "$host" address)" "$@"
}
echo '$ cat /etc/motd'
on_host web1 cat /etc/motd
echo '$ id exocomp; sudo -l -U exocomp | tail -n 1'
on_host web1 'id exocomp; sudo -l -U exocomp | tail -n 1'

say "a second run changes nothing"
run provision run edge "$dir/play/site.yml" --ssh-identity "$(field web1 key)" --wait

say "the same from OpenTofu: a second host, and a resource that provisions it"
start_host web2
mkdir "$dir/tofu"
cat >"$dir/tofurc" <<HCL
provider_installation {
  dev_overrides {
    "exocomp/exocomp" = "$root/bin"
  }
  direct {}
}
HCL
export TF_CLI_CONFIG_FILE=$dir/tofurc
cat >"$dir/tofu/main.tf" <<HCL
terraform {
  required_providers {
    exocomp = { source = "exocomp/exocomp" }
  }
}

resource "terraform_data" "web2" {
  input = "$(field web2 address)"
}

resource "exocomp_provision" "lab" {
  workspace      = "lab"
  playbook       = "../play/lab.yml"
  ssh_identities = ["$(field web2 key)"]

  inventory = {
    web2 = {
      ansible_host               = terraform_data.web2.output
      ansible_user               = "root"
      ansible_python_interpreter = "/usr/bin/python3"
    }
  }
}

output "hosts" {
  value = exocomp_provision.lab.hosts
}
HCL
sed 's/tf:edge/tf:lab/' "$dir/play/site.yml" >"$dir/play/lab.yml"
cat "$dir/tofu/main.tf"
run_tofu() {
	printf '$ tofu %s\n' "$*"
	# an override of the provider's binary is what this is; tofu warns of it each time
	tofu -chdir="$dir/tofu" "$@" -no-color 2>&1 | sed '/^Warning: Provider development overrides/,/^releases\.$/d' | cat -s
}
run_tofu apply -auto-approve
run provision status lab

say "a second apply has nothing to do"
run_tofu apply -auto-approve

say "an edited playbook is a diff, and the third apply converges"
sed -i 's/converged by exocomp/converged again by exocomp/' "$dir/play/lab.yml"
run_tofu apply -auto-approve
echo '$ cat /etc/motd'
on_host web2 cat /etc/motd

say "and it leaves in order"
run_tofu destroy -auto-approve
run inventory show tf:lab

say "a schedule: the play of the first chain, every 20 seconds, against whatever tf:edge names"
run schedule add fleet-converge --cron '*/20 * * * * *' --kind play --target tf:edge -- "$dir/play/site.yml"

say "a later apply adds a host, and nothing about the schedule changes"
start_host web3 --authorize "$(ssh-keygen -y -f "$(field web1 key)")" # as a cloud account does
cat >"$dir/infra/web3.tf" <<HCL
resource "terraform_data" "web3" {
  input = "$(field web3 address)"
}
HCL
sed -i '/^  value = {/a\
    web3 = {\
      ansible_host               = terraform_data.web3.output\
      ansible_user               = "root"\
      ansible_python_interpreter = "/usr/bin/python3"\
    }' "$dir/infra/main.tf"
run workspace apply edge --wait

say "the next tick waits for it, pins, onboards and converges it"
for _ in $(seq 240); do
	if "$root/bin/exocomp" inventory show tf:edge 2>/dev/null | grep -q '^web3 .*automation'; then break; fi
	sleep 0.5
done
run schedule pause fleet-converge
run schedule show fleet-converge
run inventory show tf:edge
echo '$ cat /etc/motd'
on_host web3 cat /etc/motd
on_host web3 grep -q converged /etc/motd

say "done; everything is removed again"
