package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible/supervised"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// vendor is the content that `playbook vendor` has installed: a directory for each
// time, of which one is current. A play that runs keeps the one that it began with.
type vendor struct {
	dir  string
	busy sync.Mutex // held while something is installed
}

// vendorCurrent names the current directory, in a file of the vendor's own.
const vendorCurrent = "current"

// vendorName is what [rand.Text] makes.
var vendorName = regexp.MustCompile(`^[A-Z2-7]+$`)

// openVendor removes what a crash left unfinished. What is whole and not current
// goes with [Daemon.dropVendored]: a job of the daemon before may use it.
func openVendor(dir string) (*vendor, error) {
	if err := durable.Mkdir(dir); err != nil {
		return nil, err
	}
	if err := durable.Sweep(dir); err != nil {
		return nil, err
	}
	v := &vendor{dir: dir}
	return v, durable.RemoveTree(v.scratch())
}

func (v *vendor) scratch() string { return filepath.Join(v.dir, "scratch") }

// current returns the current directory, or empty where nothing was vendored. One
// that cannot be told, or is gone, is an error: a play that needs it would find
// another's content, or none.
func (v *vendor) current() (string, error) {
	file := filepath.Join(v.dir, vendorCurrent)
	data, err := durable.ReadRegular(file, 64)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	name := strings.TrimSpace(string(data))
	if err == nil && !vendorName.MatchString(name) {
		err = fmt.Errorf("%s names no directory", file)
	}
	dir := filepath.Join(v.dir, name)
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return "", orchestrator.Errorf(orchestrator.CodeFailed, "what was vendored cannot be found: %w", err).
			WithHint("vendor it again: exocomp playbook vendor --requirements FILE")
	}
	return dir, nil
}

// VendorRequirements implements [rpc.Playbooks]. What is installed takes the place
// of what was there, whole or not at all. It ends with the call.
func (d *Daemon) VendorRequirements(ctx context.Context, requirements orchestrator.PlaybookRef) (out rpc.Vendored, err error) {
	if err := (orchestrator.PlaySpec{Playbook: requirements}).Validate(); err != nil {
		return out, err
	}
	install, err := d.tools.ansible(ctx)
	if err != nil {
		return out, err
	}
	v := d.vendor
	if !v.busy.TryLock() {
		return out, orchestrator.Errorf(orchestrator.CodeConflict, "requirements are being vendored already").WithHint("wait for it")
	}
	defer v.busy.Unlock()
	defer func() { err = errors.Join(err, durable.RemoveTree(v.scratch())) }()
	if err := durable.RemoveTree(v.scratch()); err != nil {
		return out, err
	}
	into, tree, home := filepath.Join(v.scratch(), "content"), filepath.Join(v.scratch(), "tree"), filepath.Join(v.scratch(), "home")
	for _, dir := range []string{into, home} {
		if err := durable.Mkdir(dir); err != nil {
			return out, err
		}
	}
	if err := supervised.Unpack(ctx, d.snapshots, requirements.Digest, tree); err != nil {
		return out, err
	}
	if err := ansible.Vendor(ctx, install, filepath.Join(tree, filepath.FromSlash(requirements.Entry)), into, home); err != nil {
		return out, err
	}
	if out.Collections, out.Roles, err = ansible.Vendored(into); err != nil {
		return out, err
	}
	if len(out.Collections)+len(out.Roles) == 0 {
		return out, orchestrator.Errorf(orchestrator.CodeInvalid, "%s names neither collections nor roles", requirements.Path)
	}
	if out.Dir, err = v.put(into); err != nil {
		return out, err
	}
	if err := d.dropVendored(ctx); err != nil {
		d.log.Warn("remove vendored content that is not current", "err", err)
	}
	return out, d.ledger.AppendEvent(ctx, orchestrator.Event{
		Kind: orchestrator.EventPlaybooksVendored, By: rpc.PeerFrom(ctx),
		Message: "vendored " + strings.Join(append(out.Collections, out.Roles...), ", "),
	})
}

// put makes the installed content the current one. All of it is on the disk before
// anything names it.
func (v *vendor) put(content string) (dir string, err error) {
	if err := syncFilesystem(content); err != nil {
		return "", err
	}
	name := rand.Text()
	dir = filepath.Join(v.dir, name)
	if err := os.Rename(content, dir); err != nil {
		return "", err
	}
	if err := durable.SyncDir(v.dir); err != nil {
		return "", err
	}
	return dir, durable.WriteFile(filepath.Join(v.dir, vendorCurrent), []byte(name+"\n"), durable.PrivateFile)
}

// syncFilesystem makes durable what lies below dir, which may be thousands of files,
// with all else on its file system.
func syncFilesystem(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// pruneVendored drops what is not current, unless something is being installed.
func (d *Daemon) pruneVendored(ctx context.Context) error {
	if !d.vendor.busy.TryLock() {
		return nil
	}
	defer d.vendor.busy.Unlock()
	return d.dropVendored(ctx)
}

// dropVendored removes what is not current, unless a job runs that may use it. The
// caller holds the vendor's lock, so that what a job begins with stays current.
func (d *Daemon) dropVendored(ctx context.Context) error {
	running, err := d.ledger.RunningJobs(ctx)
	if err != nil || len(running) > 0 {
		return err
	}
	current, err := d.vendor.current()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(d.vendor.dir)
	for _, e := range entries {
		if e.IsDir() && filepath.Join(d.vendor.dir, e.Name()) != current {
			err = errors.Join(err, durable.RemoveTree(filepath.Join(d.vendor.dir, e.Name())))
		}
	}
	return err
}
