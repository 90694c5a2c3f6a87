package ansible

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/seeds"
	"github.com/exocomp/exocomp/test/nethost"
	"github.com/exocomp/exocomp/test/nethost/nethosttest"
)

// onboard runs the seeded playbook as the inventory's user.
func (b *bench) onboard(t *testing.T, hosts map[string]*nethost.Host, vars map[string]map[string]any) ran {
	t.Helper()
	inventory, pins := inventoryOf(t, hosts, vars)
	return b.run(t, Input{
		Playbook: Playbook{Seed: seeds.Onboard}, Inventory: inventory, KnownHosts: pins,
		Vars: map[string]any{"exocomp_fleet_pubkey": b.fleet, "exocomp_user": "exocomp"},
	})
}

// verify runs a seeded playbook as the automation user.
func (b *bench) verify(t *testing.T, seed, user string, hosts map[string]*nethost.Host) ran {
	t.Helper()
	vars := map[string]map[string]any{}
	for name := range hosts {
		vars[name] = map[string]any{"ansible_user": user, "ansible_become": true}
	}
	inventory, pins := inventoryOf(t, hosts, vars)
	return b.run(t, Input{Playbook: Playbook{Seed: seed}, Inventory: inventory, KnownHosts: pins})
}

// takeSudoAway removes the package and leaves it in an archive on the host
// itself, for a test host reaches no other.
const takeSudoAway = `
mkdir -p /repo/sudo/DEBIAN
dpkg -L sudo | grep -v '^/etc' | while read -r f; do
	if [ -f "$f" ] || [ -L "$f" ]; then
		mkdir -p "/repo/sudo${f%/*}"
		cp -a "$f" "/repo/sudo$f"
	fi
done
printf '%s\n' 'Package: sudo' 'Version: 99' 'Architecture: all' 'Maintainer: a <a@b>' 'Description: sudo' >/repo/sudo/DEBIAN/control
dpkg-deb --build -Znone /repo/sudo /repo/sudo.deb
{
	cat /repo/sudo/DEBIAN/control
	echo "Filename: ./sudo.deb"
	echo "Size: $(stat -c %s /repo/sudo.deb)"
	echo "SHA256: $(sha256sum /repo/sudo.deb | cut -d' ' -f1)"
} >/repo/Packages
rm -rf /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/repo ./' >/etc/apt/sources.list
SUDO_FORCE_REMOVE=yes dpkg --remove --force-all sudo
test ! -e /usr/bin/sudo
`

func TestOnboardRefusesWhatItIsGiven(t *testing.T) {
	lab := nethosttest.Lab(t)
	b := newBench(t, lab)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "web1"})
	vars := map[string]map[string]any{
		"nokey":   {},
		"halfkey": {"exocomp_fleet_pubkey": "ssh-ed25519"},
		"twokeys": {"exocomp_fleet_pubkey": b.fleet + "\nssh-ed25519 AAAA second"},
		"asroot":  {"exocomp_fleet_pubkey": b.fleet, "exocomp_user": "root"},
		"noname":  {"exocomp_fleet_pubkey": b.fleet, "exocomp_user": "a b"},
	}
	hosts := map[string]*nethost.Host{}
	for name := range vars {
		hosts[name] = h
	}
	inventory, pins := inventoryOf(t, hosts, vars)
	r := b.run(t, Input{Playbook: Playbook{Seed: seeds.Onboard}, Inventory: inventory, KnownHosts: pins})
	wantCode(t, r.err, orchestrator.CodeFailed, `task "Check what was given" failed on asroot, halfkey, nokey, noname, twokeys: exocomp_fleet_pubkey must be`)
	if n := len(h.Logins()); n != 0 {
		t.Errorf("%d logins before the variables were checked", n)
	}
}

func reportOf(t *testing.T, r ran, host string) orchestrator.HostReport {
	t.Helper()
	for _, h := range r.progress.Report().Hosts {
		if h.Name == host {
			return h
		}
	}
	t.Fatalf("the report has no host %s", host)
	return orchestrator.HostReport{}
}

func wantOnHost(t *testing.T, h *nethost.Host, want string, argv ...string) {
	t.Helper()
	out, err := h.Exec(t.Context(), argv...)
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != want {
		t.Errorf("%s on %s printed %q, want %q", strings.Join(argv, " "), h.Name(), out, want)
	}
}

func loginsOf(hosts map[string]*nethost.Host, user string) int {
	n := 0
	for _, h := range hosts {
		for _, l := range h.Logins() {
			if l.User == user {
				n++
			}
		}
	}
	return n
}
