package secrets

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pemOf(t *testing.T, key any) orchestrator.Secret {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return orchestrator.NewSecret(string(pem.EncodeToMemory(block)))
}

func testKeys(t *testing.T) (keys []orchestrator.Secret) {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return []orchestrator.Secret{pemOf(t, ed), pemOf(t, ec), pemOf(t, rs), pemOf(t, ed)}
}

// serve runs an agent and returns its socket, and a stop that returns what
// Serve returned.
func serve(t *testing.T, a *Agent, allow func(int) bool) (path string, stop func() error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "agent.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Serve(ctx, ln, allow) }()
	var stopped atomic.Bool
	stop = func() error {
		if stopped.Swap(true) {
			return nil
		}
		cancel()
		return <-done
	}
	t.Cleanup(func() { _ = stop() })
	return path, stop
}

func dial(t *testing.T, path string) (agent.ExtendedAgent, net.Conn) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return agent.NewClient(conn), conn
}

func anyone(int) bool { return true }

func TestAgentListsAndSignsAndRefusesTheRest(t *testing.T) {
	a, err := NewAgent(testKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	path, _ := serve(t, a, func(pid int) bool { return pid == os.Getpid() })
	client, _ := dial(t, path)
	keys, err := client.List()
	if err != nil || len(keys) != 3 {
		t.Fatalf("List = %v, %v; want 3 keys, the repeated one once", keys, err)
	}
	for i, want := range []string{"ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa"} {
		if keys[i].Format != want {
			t.Errorf("key %d is %s, want %s: the order is the caller's", i, keys[i].Format, want)
		}
		var flags agent.SignatureFlags
		if want == "ssh-rsa" {
			flags = agent.SignatureFlagRsaSha512
		}
		sig, err := client.SignWithFlags(keys[i], []byte("data"), flags)
		if err != nil {
			t.Fatal(err)
		}
		if err := keys[i].Verify([]byte("data"), sig); err != nil {
			t.Errorf("signature of %s: %v", want, err)
		}
	}
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"add":        client.Add(agent.AddedKey{PrivateKey: other}),
		"remove":     client.Remove(keys[0]),
		"remove all": client.RemoveAll(),
		"lock":       client.Lock([]byte("x")),
	} {
		if err == nil {
			t.Errorf("%s was not refused", name)
		}
	}
	if keys, err := client.List(); err != nil || len(keys) != 3 {
		t.Errorf("afterwards List = %v, %v; want 3 keys", keys, err)
	}
}

func TestAgentAnswersRealSSHAdd(t *testing.T) {
	fleet, err := FleetKey(t.Context(), &memStore{}, testIdentity(t))
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAgent([]orchestrator.Secret{fleet.Private()})
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int64
	path, _ := serve(t, a, func(pid int) bool { seen.Store(int64(pid)); return true })
	cmd := exec.CommandContext(t.Context(), "ssh-add", "-L")
	cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if blob := strings.Fields(fleet.PublicLine())[1]; !strings.Contains(string(out), blob) {
		t.Errorf("ssh-add -L printed %q, want %s", out, blob)
	}
	if int(seen.Load()) != cmd.Process.Pid {
		t.Errorf("allow was asked about pid %d, want ssh-add's %d", seen.Load(), cmd.Process.Pid)
	}
}

func TestAgentClosesUnknownProcessesUnanswered(t *testing.T) {
	a, err := NewAgent(testKeys(t)[:1])
	if err != nil {
		t.Fatal(err)
	}
	path, _ := serve(t, a, func(int) bool { return false })
	client, _ := dial(t, path)
	if keys, err := client.List(); err == nil {
		t.Errorf("List = %v, want the connection closed", keys)
	}
}

func TestServeEndsWithItsContextAndLeavesNoConnection(t *testing.T) {
	a, err := NewAgent(nil)
	if err != nil {
		t.Fatal(err)
	}
	path, stop := serve(t, a, anyone)
	idle, conn := dial(t, path)
	if _, err := idle.List(); err != nil { // it is being served
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("the connection still gives %d bytes", n)
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		t.Error("the socket still answers")
	}
}

func TestServeReturnsTheListenersError(t *testing.T) {
	a, err := NewAgent(nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	if err := a.Serve(t.Context(), ln, anyone); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve = %v, want %v", err, net.ErrClosed)
	}
}

func TestKeysThatCannotBeUsedGetASentence(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(ed, "", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(ed.Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ pem, want string }{
		"passphrase": {string(pem.EncodeToMemory(block)), "private key 1 of 1 is protected by a passphrase"},
		"public":     {string(ssh.MarshalAuthorizedKey(public)), "private key 1 of 1 is not a private key that can be used"},
		"empty":      {"", "private key 1 of 1 is not a private key that can be used"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewAgent([]orchestrator.Secret{orchestrator.NewSecret(tc.pem)})
			if !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want invalid with %q", err, tc.want)
			}
		})
	}
	if err := CheckKey("/home/me/.ssh/id", orchestrator.NewSecret("")); !strings.Contains(err.Error(), "/home/me/.ssh/id is not") {
		t.Errorf("CheckKey does not name the file: %v", err)
	}
}
