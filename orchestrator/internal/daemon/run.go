package daemon

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/secrets"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// SubmitRun implements [rpc.Runs].
func (d *Daemon) SubmitRun(ctx context.Context, key string, kind orchestrator.RunKind, workspace string, spec orchestrator.RunSpec) (orchestrator.Run, error) {
	if err := d.checkSpec(kind, &spec); err != nil {
		return orchestrator.Run{}, err
	}
	if err := d.reviewLost(ctx, workspace); err != nil {
		return orchestrator.Run{}, err
	}
	run, _, err := d.ledger.SubmitRun(ctx, orchestrator.NewRun{
		Key: key, Kind: kind, Workspace: workspace, Spec: spec, By: rpc.PeerFrom(ctx),
	})
	return run, err
}

// checkSpec validates a spec against this machine, and gives its arguments their
// long form: a mistake is refused before anything is created, not by the step
// that meets it.
func (d *Daemon) checkSpec(kind orchestrator.RunKind, spec *orchestrator.RunSpec) error {
	if err := spec.Validate(kind); err != nil {
		return err
	}
	var m orchestrator.Mistakes
	args, err := ansible.ParseArgs(spec.Args)
	m.Add(err)
	spec.Args = args
	for _, p := range []*orchestrator.PlaybookRef{&spec.Playbook, spec.OnboardPlaybook} {
		if p == nil {
			continue
		}
		has, err := d.snapshots.has(p.Digest)
		if err != nil {
			return err
		}
		if !has {
			m.Addf("the daemon has no snapshot %s of playbook %s: upload it first", p.Digest, p.Path)
		}
	}
	for _, f := range spec.SSHIdentities {
		m.Add(checkIdentity(f))
	}
	if m.Err() == nil {
		missing, err := d.missingFiles(spec.Playbook, ansible.Files(spec.Args))
		if err != nil {
			return err
		}
		for _, f := range missing {
			m.Addf("behind --, @%s is no file of the playbook's tree: it is looked for beside %s", f, spec.Playbook.Path)
		}
	}
	return m.Err()
}

// missingFiles returns those of files, relative to the playbook's directory,
// that its snapshot does not hold.
func (d *Daemon) missingFiles(p orchestrator.PlaybookRef, files []string) (missing []string, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	archive, err := d.snapshots.Open(p.Digest)
	if err != nil {
		return nil, err
	}
	defer func() { _ = archive.Close() }()
	held := map[string]bool{}
	var links []string // to directories, perhaps: what lies behind is not listed by that name
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("look for files in snapshot %s: %w", p.Digest, err)
		}
		held[path.Clean(h.Name)] = h.Typeflag != tar.TypeDir
		if h.Typeflag == tar.TypeSymlink {
			links = append(links, path.Clean(h.Name)+"/")
		}
	}
	for _, f := range files {
		name := path.Join(path.Dir(p.Entry), f)
		behind := slices.ContainsFunc(links, func(l string) bool { return strings.HasPrefix(name, l) })
		if !held[name] && !behind {
			missing = append(missing, f)
		}
	}
	return missing, nil
}

// checkIdentity refuses a key file that the daemon cannot log in with.
func checkIdentity(file string) error {
	_, err := secrets.ReadKey(file)
	var unread *fs.PathError
	if errors.As(err, &unread) {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "--ssh-identity: no key file on the daemon's host that uid %d can read: %w", os.Getuid(), err).
			WithHint("give the path of a private key there")
	}
	return err
}

// GetRun implements [rpc.Runs].
func (d *Daemon) GetRun(ctx context.Context, ref string) (orchestrator.Run, error) {
	run, err := d.run(ctx, ref)
	return settled(ctx, d, run, err)
}

// run resolves a reference: a run's id, or a workspace for its newest run.
func (d *Daemon) run(ctx context.Context, ref string) (orchestrator.Run, error) {
	if strings.HasPrefix(ref, "run_") {
		id, err := orchestrator.ParseRunID(ref)
		if err != nil {
			return orchestrator.Run{}, err
		}
		return d.ledger.Run(ctx, id)
	}
	if _, err := d.ledger.Workspace(ctx, ref); err != nil {
		return orchestrator.Run{}, err
	}
	return d.ledger.NewestRun(ctx, ref)
}

// ListRuns implements [rpc.Runs].
func (d *Daemon) ListRuns(ctx context.Context, filter orchestrator.RunFilter) ([]orchestrator.Run, error) {
	runs, err := d.ledger.Runs(ctx, filter)
	return settled(ctx, d, runs, err)
}

// ResumeRun implements [rpc.Runs].
func (d *Daemon) ResumeRun(ctx context.Context, ref string, change rpc.ResumeSpec) (orchestrator.Run, error) {
	run, err := d.run(ctx, ref)
	if err != nil {
		return run, err
	}
	spec := run.Spec
	if change.Playbook != nil {
		spec.Playbook = *change.Playbook
	}
	if change.OnboardPlaybook != nil {
		spec.OnboardPlaybook = change.OnboardPlaybook
	}
	if change.SSHWait != 0 {
		spec.SSHWait = change.SSHWait
	}
	if len(change.Egress) > 0 {
		spec.Egress = change.Egress
	}
	if len(change.SSHIdentities) > 0 {
		spec.SSHIdentities = change.SSHIdentities
	}
	if len(change.Args) > 0 {
		spec.Args = change.Args
	}
	spec.AcceptLost = change.AcceptLost
	if err := checkKept(run, change); err != nil {
		return run, err
	}
	if err := d.checkSpec(run.Kind, &spec); err != nil {
		return run, err
	}
	if err := d.reviewLost(ctx, run.Workspace); err != nil {
		return run, err
	}
	return d.ledger.ResumeRun(ctx, orchestrator.ResumeRun{
		Run: run.ID, Spec: spec, By: rpc.PeerFrom(ctx), From: change.From, FailedOnly: change.FailedOnly,
	})
}

// checkKept refuses a resume that keeps the run's key files where one of them is
// gone: the person, who named none, learns of a flag to name another.
func checkKept(run orchestrator.Run, change rpc.ResumeSpec) error {
	if len(change.SSHIdentities) > 0 {
		return nil
	}
	for _, f := range run.Spec.SSHIdentities {
		if err := checkIdentity(f); err != nil {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "the run logs in with %s, as it was submitted: %s", f, orchestrator.FailureOf(err).Message).
				WithHint("give one that is there: %s", run.ResumeCommand("--ssh-identity", "FILE"))
		}
	}
	return nil
}

// CancelRun implements [rpc.Runs].
func (d *Daemon) CancelRun(ctx context.Context, ref string, force bool) (orchestrator.Run, error) {
	run, err := d.run(ctx, ref)
	if err != nil {
		return run, err
	}
	return d.ledger.CancelRun(ctx, run.ID, force, rpc.PeerFrom(ctx))
}
