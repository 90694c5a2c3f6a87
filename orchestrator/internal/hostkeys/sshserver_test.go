package hostkeys

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newKey makes a host key of a type.
func newKey(t testing.TB, keyType string) ssh.Signer {
	t.Helper()
	var key any
	var err error
	switch keyType {
	case ssh.KeyAlgoED25519:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case ssh.KeyAlgoECDSA256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case ssh.KeyAlgoECDSA384:
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case ssh.KeyAlgoRSA:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		t.Fatalf("no such key type: %s", keyType)
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// server is an SSH server on loopback that lets nobody in.
type server struct {
	port  int
	conns atomic.Int64
	mu    sync.Mutex
	keys  []ssh.Signer
}

func newServer(t testing.TB, keys ...ssh.Signer) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{port: ln.Addr().(*net.TCPAddr).Port, keys: keys}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			conns.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		conns.Wait()
	})
	return s
}

func (s *server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	config := &ssh.ServerConfig{
		PasswordCallback: func(c ssh.ConnMetadata, _ []byte) (*ssh.Permissions, error) { return nil, ssh.ErrNoAuth },
	}
	s.mu.Lock()
	for _, k := range s.keys {
		config.AddHostKey(k)
	}
	s.mu.Unlock()
	_, _, _, _ = ssh.NewServerConn(conn, config)
}

// setKeys replaces the server's host keys.
func (s *server) setKeys(keys ...ssh.Signer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = keys
}

func (s *server) target(types ...string) Target {
	return Target{Host: "127.0.0.1", Port: s.port, Types: types}
}

func (s *server) want(name string) HostWant {
	return HostWant{Workspace: "edge", Name: name, Host: "127.0.0.1", Port: s.port}
}

// pinOf is the pin of a key as [Decide] makes it.
func pinOf(w HostWant, key ssh.PublicKey, users ...orchestrator.PinUser) orchestrator.Pin {
	s := &site{place: placeOf(w.Host, w.Port)}
	pin := s.newPin(key, nil)
	pin.InstanceID = w.InstanceID
	pin.Users = users
	return pin
}
