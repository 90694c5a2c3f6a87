package hostkeys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestScanAsksForThePreferredOrThePinnedType(t *testing.T) {
	ed, ec, rs := newKey(t, ssh.KeyAlgoED25519), newKey(t, ssh.KeyAlgoECDSA384), newKey(t, ssh.KeyAlgoRSA)
	all := newServer(t, rs, ec, ed)
	for _, tc := range []struct {
		name   string
		server *server
		types  []string
		want   ssh.Signer
	}{
		{"ed25519 first", all, nil, ed},
		{"then ecdsa", newServer(t, rs, ec), nil, ec},
		{"then rsa", newServer(t, rs), nil, rs},
		{"pinned ecdsa", all, []string{ssh.KeyAlgoECDSA384}, ec},
		{"pinned rsa", all, []string{ssh.KeyAlgoRSA}, rs},
		{"second of the pinned", newServer(t, rs), []string{ssh.KeyAlgoED25519, ssh.KeyAlgoRSA}, rs},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.server.conns.Load()
			r := Scan(t.Context(), []Target{tc.server.target(tc.types...)}, Options{})[0]
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if got, want := keyLine(r.Key), keyLine(tc.want.PublicKey()); got != want {
				t.Errorf("key = %s, want %s", got, want)
			}
			if n := tc.server.conns.Load() - before; n != 1 {
				t.Errorf("%d connections, want one", n)
			}
		})
	}
}

func TestScanSaysThatTheTypeIsNotOffered(t *testing.T) {
	s := newServer(t, newKey(t, ssh.KeyAlgoECDSA256))
	r := Scan(t.Context(), []Target{s.target(ssh.KeyAlgoED25519)}, Options{})[0]
	if !errors.Is(r.Err, ErrNotOffered) || !errors.Is(r.Err, orchestrator.ErrRefused) {
		t.Fatalf("error = %v, want ErrNotOffered, refused", r.Err)
	}
	if !strings.Contains(r.Err.Error(), "ecdsa-sha2-nistp256") {
		t.Errorf("error does not say what is offered: %v", r.Err)
	}
}

func TestScanIsBoundedOnPeersThatSayNothing(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	port := ln.Addr().(*net.TCPAddr).Port // the backlog accepts, nobody answers
	start := time.Now()
	r := Scan(t.Context(), []Target{{Host: "127.0.0.1", Port: port}}, Options{Timeout: 100 * time.Millisecond})[0]
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %s with a timeout of 100ms", took)
	}
	if r.Err == nil || !strings.Contains(r.Err.Error(), "gave no host key within 100ms") {
		t.Errorf("error = %v", r.Err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := Scan(ctx, []Target{{Host: "127.0.0.1", Port: port}}, Options{})[0]; !errors.Is(r.Err, orchestrator.ErrCancelled) {
		t.Errorf("cancelled: error = %v", r.Err)
	}
}

func TestScanNamesARefusedConnection(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	_ = ln.Close()
	r := Scan(t.Context(), []Target{{Host: "127.0.0.1", Port: port}}, Options{})[0]
	want := fmt.Sprintf("127.0.0.1:%d gave no host key: connect: connection refused", port)
	if r.Err == nil || r.Err.Error() != want {
		t.Errorf("error = %v, want %s", r.Err, want)
	}
}

// How a peer's hanging up is met depends on who was reading or writing.
func TestScanOfAPeerThatHangsUp(t *testing.T) {
	target := Target{Host: "127.0.0.1", Port: 22}
	for _, err := range []error{
		io.EOF, fmt.Errorf("ssh: handshake failed: %w", net.ErrClosed),
		&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)},
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
	} {
		if got := scanError(t.Context(), target, Options{}, err); got.Error() != "127.0.0.1:22 gave no host key: it closed the connection" {
			t.Errorf("%v is told as %v", err, got)
		}
	}
}

func TestScanOfManyHostsKeepsTheirOrder(t *testing.T) {
	var targets []Target
	var want []string
	for range 150 {
		key := newKey(t, ssh.KeyAlgoED25519)
		targets = append(targets, newServer(t, key).target())
		want = append(want, keyLine(key.PublicKey()))
	}
	for i, r := range Scan(t.Context(), targets, Options{Timeout: time.Minute}) { // the race detector's handshakes are slow
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if got := keyLine(r.Key); got != want[i] {
			t.Errorf("result %d is the key of another target", i)
		}
	}
}

// TestScanOfARealSSHD runs sshd for each connection, as inetd would.
func TestScanOfARealSSHD(t *testing.T) {
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	dir := t.TempDir()
	config := "UsePAM no\nPidFile none\nLogLevel VERBOSE\n"
	public := map[string]string{}
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		path := filepath.Join(dir, kind)
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
		line, err := os.ReadFile(path + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(string(line))
		public[f[0]] = f[0] + " " + f[1]
		config += "HostKey " + path + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	logs := make(chan string, 8)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			f, err := conn.(*net.TCPConn).File()
			_ = conn.Close()
			if err != nil {
				logs <- err.Error()
				continue
			}
			var stderr strings.Builder
			args := append(privateRun(), sshd, "-i", "-e", "-f", filepath.Join(dir, "config"))
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = f, f, &stderr
			_ = cmd.Run() // 255 when the peer goes without a login
			_ = f.Close()
			logs <- stderr.String()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-served })
	port := ln.Addr().(*net.TCPAddr).Port
	for keyType, want := range public {
		r := Scan(t.Context(), []Target{{Host: "127.0.0.1", Port: port, Types: []string{keyType}}}, Options{})[0]
		log := <-logs
		if r.Err != nil {
			t.Fatalf("%v; sshd says: %s", r.Err, log)
		}
		if got := keyLine(r.Key); got != want {
			t.Errorf("%s: key = %s, want %s", keyType, got, want)
		}
	}
}

// privateRun returns a command prefix that gives sshd its /run/sshd, which it
// demands of root, in a mount namespace of its own.
func privateRun() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	return []string{"unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o mode=755 tmpfs /run && mkdir -m 755 /run/sshd && exec "$@"`, "sh"}
}
