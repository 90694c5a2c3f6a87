package nethost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// slotsDir holds a directory for each lab that lives. It is the same for every
// process of the machine, because the networks are.
const slotsDir = "/run/exocomp-nethost"

// slots is how many labs can live at once: one for each value of the third byte
// of a network's address.
const slots = 256

// A slot is the right to use one network. Its directory is locked (flock) for
// as long as the process lives that claimed it; a directory without a lock is
// what a dead process left.
type slot struct {
	number int
	dir    string
	lock   *os.File
}

// errTaken: a living process holds the slot.
var errTaken = errors.New("slot is taken")

// claim locks slot n. Directories come and go, so a lock counts only if the
// path still leads to the directory that was locked.
func claim(n int) (*slot, error) {
	dir := filepath.Join(slotsDir, strconv.Itoa(n))
	for {
		err := os.MkdirAll(dir, 0o755)
		var f *os.File
		if err == nil {
			f, err = os.Open(dir)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody has just removed it, or slotsDir above it
		}
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, errTaken
			}
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		locked, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if now, err := os.Stat(dir); err == nil && os.SameFile(locked, now) {
			return &slot{number: n, dir: dir, lock: f}, nil
		}
		f.Close()
	}
}

// claimFree claims the first slot whose network nobody else on this machine uses.
func claimFree(ctx context.Context) (*slot, error) {
	for n := range slots {
		s, err := claim(n)
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// A lab may have died between the general sweep and this claim.
		if err := s.sweep(ctx); err != nil {
			return nil, errors.Join(err, s.drop())
		}
		inUse, err := s.networkInUse()
		if err != nil {
			return nil, errors.Join(err, s.drop())
		}
		if !inUse {
			return s, nil
		}
		if err := s.drop(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("all %d networks of 198.18.0.0/16 are in use", slots)
}

// sweepDead removes what the labs of dead processes left.
func sweepDead(ctx context.Context) error {
	entries, err := os.ReadDir(slotsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		s, err := claim(n)
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(s.sweep(ctx), s.drop()); err != nil {
			return err
		}
	}
	return nil
}

// networkInUse reports whether an interface of somebody else has an address in
// the slot's network.
func (s *slot) networkInUse() (bool, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	network := s.network()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Bits() > 0 && p.Overlaps(network) {
			return true, nil
		}
	}
	return false, nil
}

// sweep ends the processes and removes the links of the slot's former owner.
// The processes end by themselves with their owner: waiting is the common case.
func (s *slot) sweep(ctx context.Context) error {
	if err := s.killHolders(ctx); err != nil {
		return fmt.Errorf("end hosts of lab %d: %w", s.number, err)
	}
	if err := s.removeLinks(ctx); err != nil {
		return fmt.Errorf("remove links of lab %d: %w", s.number, err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// release sweeps the slot and gives it back.
func (s *slot) release() error {
	ctx, cancel := closeContext()
	defer cancel()
	return errors.Join(s.sweep(ctx), s.drop())
}

// drop removes the slot's directory and then its lock, in this order, so that
// nobody can lock a directory that is about to go without noticing.
func (s *slot) drop() error {
	err := os.RemoveAll(s.dir)
	s.lock.Close()
	os.Remove(slotsDir) // succeeds for the last lab only
	return err
}
