package hostkeys

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestKnownHostsIsWhatOpenSSHAndGoRead(t *testing.T) {
	places := []struct {
		host string
		port int
	}{
		{"web1.example.org", 22}, {"web1.example.org", 2222}, {"10.0.0.5", 22}, {"10.0.0.5", 10022},
		{"fd00::1", 22}, {"fd00::1", 2222}, {"MiXed.example.org", 22},
	}
	var pins []orchestrator.Pin
	keys := map[string]ssh.PublicKey{}
	for i, p := range places {
		key := newKey(t, []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoRSA}[i%3]).PublicKey()
		pin := pinOf(HostWant{Host: p.host, Port: p.port}, key)
		pins = append(pins, pin)
		keys[pin.HostPort()] = key
	}
	retired := pinOf(HostWant{Host: "gone.example.org", Port: 22}, newKey(t, ssh.KeyAlgoED25519).PublicKey())
	retired.RetiredAt = time.Now()
	content := KnownHosts(append(pins, retired))
	path := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}

	t.Run("ssh-keygen -F", func(t *testing.T) {
		for _, pin := range pins {
			out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-F", pin.HostPort(), "-f", path, "-l").Output()
			if err != nil || !strings.Contains(string(out), pin.SHA256) {
				t.Errorf("%s: %v: %q, want %s", pin.HostPort(), err, out, pin.SHA256)
			}
		}
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-F", "gone.example.org", "-f", path).Output(); err == nil {
			t.Errorf("a retired pin is found: %s", out)
		}
	})
	t.Run("ssh-keygen -l", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-l", "-f", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(out), "SHA256:"); n != len(pins) {
			t.Errorf("%d fingerprints, want %d:\n%s", n, len(pins), out)
		}
	})
	t.Run("x/crypto", func(t *testing.T) {
		check, err := knownhosts.New(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, pin := range pins {
			addr := orchestrator.DialAddress(pin.Host, pin.Port)
			if err := check(addr, &net.TCPAddr{}, keys[pin.HostPort()]); err != nil {
				t.Errorf("%s: %v", addr, err)
			}
		}
	})
	t.Run("sorted", func(t *testing.T) {
		back := slices.Clone(pins)
		slices.Reverse(back)
		if got := KnownHosts(back); string(got) != string(content) {
			t.Errorf("the order of the pins shows:\n%s\n%s", got, content)
		}
	})
	if got := KnownHosts(nil); len(got) != 0 {
		t.Errorf("no pins give %q", got)
	}
}
