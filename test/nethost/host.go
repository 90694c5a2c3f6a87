package nethost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// closeTimeout bounds what Close does. Close takes no context: what it removes
// must go also when the test's time is up.
const closeTimeout = time.Minute

func closeContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), closeTimeout)
}

// HostOptions describe a host. Only Name is required.
type HostOptions struct {
	// Name is the host name: lower-case letters, digits and dashes.
	Name string
	// Port is where sshd listens; 0 means 22.
	Port int
	// LateSSHD leaves sshd off: connections are refused until [Host.StartSSHD].
	LateSSHD bool
	// User is the login user that the lab's key opens; empty means root. Any
	// other user has passwordless sudo, and root cannot log in then.
	User string
	// AuthorizedKeys are further keys for the login user, a line each.
	AuthorizedKeys []string
	// HostKeyTypes are the types of its host keys; empty means ED25519 and ECDSA.
	HostKeyTypes []KeyType
}

// Host is one throwaway machine. Its methods may be called by several
// goroutines at once; after Close they fail.
type Host struct {
	lab            *Lab
	number         int
	name           string
	address        string
	port           int
	user           string
	people         []string // the ordinary accounts it starts with
	authorizedKeys []string
	anyKey         bool // sshd takes any key
	keyTypes       []KeyType
	dir            string
	victim         *Host // whose address it has taken over
	holder         *holder
	log            *sshdLog

	mu   sync.Mutex // guards what follows
	keys map[KeyType]hostKey
	sshd int // the pid in the host of the sshd that listens, or 0
}

var (
	hostName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	userName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)
)

// Host makes a host and, unless told otherwise, returns when its sshd listens.
// ctx bounds the making only.
func (l *Lab) Host(ctx context.Context, o HostOptions) (*Host, error) {
	if !hostName.MatchString(o.Name) {
		return nil, fmt.Errorf("host name %q does not match %s", o.Name, hostName)
	}
	h := &Host{name: o.Name, port: o.Port, user: o.User, authorizedKeys: o.AuthorizedKeys, keyTypes: o.HostKeyTypes}
	if h.port == 0 {
		h.port = 22
	}
	switch {
	case h.user == "":
		h.user = "root"
	case !userName.MatchString(h.user):
		return nil, fmt.Errorf("user name %q does not match %s", h.user, userName)
	case h.user != "root":
		h.people = []string{h.user}
	}
	if len(h.keyTypes) == 0 {
		h.keyTypes = []KeyType{ED25519, ECDSA}
	}
	if err := l.start(ctx, h); err != nil {
		return nil, fmt.Errorf("make host %s: %w", h.name, err)
	}
	err := l.slot.plug(ctx, h.number, h.address)
	if err == nil && !o.LateSSHD {
		err = h.StartSSHD(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make host %s: %w", h.name, err), h.Close())
	}
	return h, nil
}

// start gives h a number, and an address if it has none, and starts it without
// an sshd and with the bridge's end of its cable down.
func (l *Lab) start(ctx context.Context, h *Host) error {
	number, err := l.nextNumber()
	if err != nil {
		return err
	}
	h.lab, h.number = l, number
	if h.address == "" {
		h.address = l.slot.addr(number).String()
	}
	if h.keys, err = newHostKeys(h.keyTypes, "root@"+h.name); err != nil {
		return err
	}
	h.dir = filepath.Join(l.slot.dir, strconv.Itoa(number)+"-"+h.name)
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		return err
	}
	if err := stageHost(filepath.Join(h.dir, "stage"), h, l.key.Public); err != nil {
		return fmt.Errorf("stage files: %w", err)
	}
	if h.log, err = openLog(); err != nil {
		return fmt.Errorf("open sshd log: %w", err)
	}
	h.holder, err = startHolder(ctx, h, func(pid int) error { return l.slot.addCable(ctx, number, pid) })
	if err != nil {
		h.log.close()
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.Join(errors.New("the lab is closed"), h.stop())
	}
	l.hosts[h] = struct{}{}
	return nil
}

// Name returns the host name.
func (h *Host) Name() string { return h.name }

// Addr returns the host's address, without the port.
func (h *Host) Addr() string { return h.address }

// Port returns the port on which its sshd listens.
func (h *Host) Port() int { return h.port }

// HostPort returns address and port as net.Dial takes them.
func (h *Host) HostPort() string { return net.JoinHostPort(h.address, strconv.Itoa(h.port)) }

// User returns the login user.
func (h *Host) User() string { return h.user }

// LinkDown cuts the host off: packets to it vanish, connections stay open and
// silent, and new ones neither succeed nor fail until somebody's time is up.
func (h *Host) LinkDown(ctx context.Context) error { return h.lab.slot.unplug(ctx, h.number) }

// LinkUp plugs the host in again.
func (h *Host) LinkUp(ctx context.Context) error {
	return h.lab.slot.plug(ctx, h.number, h.address)
}

// Close ends the host: its processes, its files, its link. Packets to its
// address vanish from then on. It may be called again, and Lab.Close calls it.
// An impostor gives the address back to the host that it stood in for.
func (h *Host) Close() error {
	h.lab.mu.Lock()
	_, open := h.lab.hosts[h]
	delete(h.lab.hosts, h)
	h.lab.mu.Unlock()
	if !open {
		return nil
	}
	err := h.stop()
	if h.victim != nil {
		ctx, cancel := closeContext()
		defer cancel()
		err = errors.Join(err, h.victim.LinkUp(ctx))
	}
	return err
}

func (h *Host) stop() error {
	ctx, cancel := closeContext()
	defer cancel()
	h.holder.stop()
	h.log.close()
	return errors.Join(removeLink(ctx, h.lab.slot.port(h.number)), os.RemoveAll(h.dir))
}

// MITM puts a man in the middle between everybody and a host: another machine
// with the same name, address, port and people, but with host keys of its own,
// which lets anybody in. The host itself is cut off until the impostor's Close.
// The impostor's [Host.Logins] are the logins that fell for it.
func (l *Lab) MITM(ctx context.Context, victim *Host) (*Host, error) {
	passwd, err := victim.ReadFile("/etc/passwd")
	if err != nil {
		return nil, fmt.Errorf("read people of %s: %w", victim.name, err)
	}
	m := &Host{
		name: victim.name, address: victim.address, port: victim.port, user: victim.user,
		people: people(string(passwd)), anyKey: true, keyTypes: slices.Clone(victim.keyTypes),
	}
	if err := l.start(ctx, m); err != nil {
		return nil, fmt.Errorf("make impostor of %s: %w", victim.name, err)
	}
	m.victim = victim
	err = m.StartSSHD(ctx)
	if err == nil {
		err = victim.LinkDown(ctx)
	}
	if err == nil {
		err = m.LinkUp(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take over address of %s: %w", victim.name, err), m.Close())
	}
	return m, nil
}
