package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

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

// openVendor removes what a crash left.
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

// current returns the current directory, or empty where there is none.
func (v *vendor) current() string {
	name, err := durable.ReadRegular(filepath.Join(v.dir, vendorCurrent), 64)
	if err != nil {
		return ""
	}
	return filepath.Join(v.dir, filepath.Base(strings.TrimSpace(string(name))))
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
	d.dropVendored(ctx)
	return out, d.ledger.AppendEvent(ctx, orchestrator.Event{
		Kind: orchestrator.EventPlaybooksVendored, By: rpc.PeerFrom(ctx),
		Message: "vendored " + strings.Join(append(out.Collections, out.Roles...), ", "),
	})
}

// put makes the installed content the current one.
func (v *vendor) put(content string) (dir string, err error) {
	name := rand.Text()
	dir = filepath.Join(v.dir, name)
	if err := os.Rename(content, dir); err != nil {
		return "", err
	}
	return dir, durable.WriteFile(filepath.Join(v.dir, vendorCurrent), []byte(name+"\n"), durable.PrivateFile)
}

// dropVendored removes what is not current, unless a job runs that may use it.
func (d *Daemon) dropVendored(ctx context.Context) {
	running, err := d.ledger.RunningJobs(ctx)
	if err != nil || len(running) > 0 {
		return
	}
	entries, err := os.ReadDir(d.vendor.dir)
	for _, e := range entries {
		path := filepath.Join(d.vendor.dir, e.Name())
		if e.IsDir() && path != d.vendor.current() && path != d.vendor.scratch() {
			err = errors.Join(err, durable.RemoveTree(path))
		}
	}
	if err != nil {
		d.log.Warn("remove vendored content that is not current", "err", err)
	}
}
