// Package nethost makes throwaway SSH hosts out of namespaces: each has its own
// network address, host name, processes, accounts and host keys over an overlay
// of this machine's root file system, and a real sshd. It is for gates and for
// the demonstration, needs root on Linux, and takes well under a second a host.
//
// A [Lab] is one bridge with its network; a [Host] is one machine on it. Daemon
// and Ansible reach the hosts from the root namespace, where the bridge has an
// address. Everything of a host that can hold a resource (mounts, network,
// processes) lives in namespaces whose first process ends with the process that
// made the lab, however that one ends. What outlives a kill -9, the bridge and a
// directory, is swept by the next [New] of anybody.
//
// A host's root is real root without a user namespace: run only plays that you
// would run on a machine of your own.
package nethost

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// lastNumber is the last address of a lab's network that a host can have; the
// first, .1, is the root namespace's own.
const lastNumber = 254

// Lab is one bridge, its network and the hosts on it. Its methods may be called
// by several goroutines at once.
type Lab struct {
	slot *slot
	key  Key

	mu      sync.Mutex // guards what follows
	number  int        // the last number given to a host or a vacant address
	hosts   map[*Host]struct{}
	proxies map[*Proxy]struct{}
	closed  bool
	err     error // what Close returned
}

// Key is the key pair of a lab, authorized for the login user of every host.
type Key struct {
	Path        string // the private key, OpenSSH format, mode 0600
	Public      string // one authorized_keys line without a line break
	Fingerprint string // SHA256:…
}

// New makes a lab: it takes a free network of 198.18.0.0/16, sweeps what labs
// of dead processes left behind, and lays the bridge. It fails by name if it
// does not run as root or a tool is missing.
func New(ctx context.Context) (*Lab, error) {
	if err := checkTools(); err != nil {
		return nil, err
	}
	if err := sweepDead(ctx); err != nil {
		return nil, fmt.Errorf("sweep dead labs: %w", err)
	}
	s, err := claimFree(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim a network: %w", err)
	}
	l := &Lab{slot: s, number: 1, hosts: map[*Host]struct{}{}, proxies: map[*Proxy]struct{}{}}
	if l.key, err = writeKey(filepath.Join(s.dir, "key")); err != nil {
		return nil, errors.Join(fmt.Errorf("make the lab's key: %w", err), l.Close())
	}
	if err := s.addBridge(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("lay the bridge: %w", err), l.Close())
	}
	return l, nil
}

// Key returns the lab's client key pair. It is gone with the lab.
func (l *Lab) Key() Key { return l.key }

// Dir returns a directory that lives as long as the lab, for files of tests.
func (l *Lab) Dir() string { return l.slot.dir }

// Gateway returns the address of the root namespace in the lab's network: the
// source that hosts see, and an address on which a proxy can listen.
func (l *Lab) Gateway() string { return l.slot.addr(1).String() }

// VacantAddr returns an address of the lab's network that no host has and none
// will get. A connection to it ends with "no route to host" after some seconds,
// as with a machine that is not there yet; a later [Lab.Proxy] may listen on it.
func (l *Lab) VacantAddr() (string, error) {
	n, err := l.nextNumber()
	if err != nil {
		return "", err
	}
	return l.slot.addr(n).String(), nil
}

// Close ends every process of every host and removes the bridge and the lab's
// directory. It may be called again and then returns the same error.
func (l *Lab) Close() error {
	l.mu.Lock()
	if l.closed {
		defer l.mu.Unlock()
		return l.err
	}
	l.closed = true
	hosts, proxies := l.hosts, l.proxies
	l.hosts, l.proxies = nil, nil
	l.mu.Unlock()

	var errs []error
	for p := range proxies {
		errs = append(errs, p.stop())
	}
	for h := range hosts {
		errs = append(errs, h.stop())
	}
	errs = append(errs, l.slot.release())
	err := errors.Join(errs...)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	return err
}

func (l *Lab) nextNumber() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, errors.New("the lab is closed")
	}
	if l.number == lastNumber {
		return 0, fmt.Errorf("the lab's network has no address left after %s", l.slot.addr(l.number))
	}
	l.number++
	return l.number, nil
}

// checkTools names everything that is missing at once.
func checkTools() error {
	if os.Geteuid() != 0 {
		return errors.New("test hosts need root")
	}
	packages := []struct{ file, name string }{
		{sshdPath, "openssh-server"},
		{"ip", "iproute2"},
		{"nsenter", "util-linux"},
		{"bash", "bash"},
		{"sudo", "sudo"},
		{"/usr/bin/python3", "python3"},
	}
	var missing []string
	for _, p := range packages {
		if _, err := exec.LookPath(p.file); err != nil {
			missing = append(missing, p.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("test hosts need packages that are not installed: apt-get install %s", strings.Join(missing, " "))
	}
	return nil
}

func writeKey(path string) (Key, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, "nethost")
	if err != nil {
		return Key{}, err
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return Key{}, err
	}
	k, err := ssh.NewPublicKey(public)
	if err != nil {
		return Key{}, err
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k))) + " nethost"
	return Key{Path: path, Public: line, Fingerprint: ssh.FingerprintSHA256(k)}, nil
}

// network returns the slot's network.
func (s *slot) network() netip.Prefix { return netip.PrefixFrom(s.addr(0), 24) }

// addr returns the address with the given last byte in the slot's network.
func (s *slot) addr(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18, byte(s.number), byte(number)})
}
