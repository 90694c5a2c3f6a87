package orchestrator

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// RunKind decides the steps of a run.
type RunKind string

const (
	// RunProvision is the chain of four steps.
	RunProvision RunKind = "provision"
	// RunHandoff is the chain of two: it applies, pins, and plays as the
	// inventory's own user. It waits for nobody and onboards nobody.
	RunHandoff RunKind = "handoff"
)

// RunKinds lists every kind.
var RunKinds = []RunKind{RunProvision, RunHandoff}

// Steps returns the chain of a kind, in order.
func (k RunKind) Steps() []StepKind {
	switch k {
	case RunProvision:
		return []StepKind{StepTofuApply, StepSSHWait, StepHostOnboard, StepAnsiblePlay}
	case RunHandoff:
		return []StepKind{StepTofuApply, StepAnsiblePlay}
	default:
		return nil
	}
}

// NoStep is the error about a step that runs of the kind do not have.
func (k RunKind) NoStep(step StepKind) *Error {
	kinds := k.Steps()
	names := make([]string, len(kinds))
	for i, s := range kinds {
		names[i] = string(s)
	}
	return Errorf(CodeInvalid, "a %s has no step %.80q", k, string(step)).WithHint("its steps are: %s", strings.Join(names, ", "))
}

// RunState is where a run stands. It follows from its steps' states alone, see
// [RunStateOf].
type RunState string

const (
	RunQueued           RunState = "queued" // behind another run or apply of its workspace
	RunRunning          RunState = "running"
	RunAwaitingApproval RunState = "awaiting-approval"
	RunSucceeded        RunState = "succeeded"
	RunFailed           RunState = "failed" // final until resumed
	RunCancelled        RunState = "cancelled"
)

// RunStates lists every state.
var RunStates = []RunState{
	RunQueued, RunRunning, RunAwaitingApproval, RunSucceeded, RunFailed, RunCancelled,
}

// Final reports whether the run has given its workspace back.
func (s RunState) Final() bool {
	return s == RunSucceeded || s == RunFailed || s == RunCancelled
}

// RunStateOf derives a run's state from its steps' states, given in order.
func RunStateOf(steps []StepState) RunState {
	count := make(map[StepState]int, len(StepStates))
	for _, s := range steps {
		count[s]++
	}
	switch {
	case count[StepCancelled] > 0:
		return RunCancelled
	case count[StepFailed] > 0:
		return RunFailed
	case count[StepAwaitingApproval] > 0:
		return RunAwaitingApproval
	case count[StepSucceeded] == len(steps):
		return RunSucceeded
	case count[StepBlocked] == len(steps):
		return RunQueued
	default:
		return RunRunning
	}
}

// Run is one chain under one id.
type Run struct {
	ID          RunID     `json:"id,omitempty"`
	Kind        RunKind   `json:"kind"`
	Workspace   string    `json:"workspace,omitempty"`
	State       RunState  `json:"state"`
	Spec        RunSpec   `json:"spec"`
	Inventory   string    `json:"inventory,omitempty"` // digest that step 1 recorded and the later ones require; empty before
	Resource    bool      `json:"resource,omitempty"`  // an exocomp_provision asked for it
	SubmittedBy Peer      `json:"submitted_by,omitzero"`
	CreatedAt   time.Time `json:"created_at,omitzero"`
	FinishedAt  time.Time `json:"finished_at,omitzero"` // set iff the state is final
	Steps       []Step    `json:"steps,omitempty"`      // in order
}

// Step returns the run's step of a kind, or nil.
func (r *Run) Step(kind StepKind) *Step {
	for i := range r.Steps {
		if r.Steps[i].Kind == kind {
			return &r.Steps[i]
		}
	}
	return nil
}

// FailedStep returns the first failed or cancelled step, or nil.
func (r *Run) FailedStep() *Step {
	for i := range r.Steps {
		if s := r.Steps[i].State; s == StepFailed || s == StepCancelled {
			return &r.Steps[i]
		}
	}
	return nil
}

// AppliedByCaller reports whether the run's first step is the apply that an
// `exocomp_provision` is part of: its inventory is handed over.
func (r *Run) AppliedByCaller() bool {
	return len(r.Steps) > 0 && r.Steps[0].Origin == OriginCaller
}

// ResumeCommand is the command that continues the run, with further words.
func (r *Run) ResumeCommand(words ...string) string {
	return ShellCommand(append([]string{"exocomp", "provision", "resume", r.Workspace}, words...)...)
}

// FollowsInventory reports whether the run, resumed at a step of that kind, goes
// on with the inventory that its workspace has by then: nothing was done yet for
// the hosts of the one before. A play after an onboarding requires the inventory
// that was onboarded, and an apply captures anew.
func (r *Run) FollowsInventory(kind StepKind) bool {
	switch kind {
	case StepSSHWait, StepHostOnboard:
		return true
	case StepAnsiblePlay:
		return r.Kind == RunHandoff
	default:
		return false
	}
}

// ReapplyCommand is what continues the run at a step that follows the inventory
// once the configuration that this comes from is corrected.
func (r *Run) ReapplyCommand() string {
	if r.AppliedByCaller() {
		return "tofu apply, where the exocomp_provision is"
	}
	return ShellCommand("exocomp", "workspace", "apply", r.Workspace, "--wait") + " && " + r.ResumeCommand()
}

// AnotherCommand is the command that starts the same chain from its beginning.
func (r *Run) AnotherCommand() string {
	switch {
	case r.AppliedByCaller():
		return "tofu apply, where the exocomp_provision is"
	case r.Spec.Playbook.Path == "":
		return "exocomp " + string(r.Kind) + " run " + r.Workspace + " PLAYBOOK"
	}
	return ShellCommand("exocomp", string(r.Kind), "run", r.Workspace, r.Spec.Playbook.Path)
}

// InventoryChanged refuses to go on with a run for which step 1 captured another
// inventory than there is now.
func (r *Run) InventoryChanged() *Error {
	return Errorf(CodeRefused, "the inventory %s has changed since this run captured it", InventoryName(r.Workspace)).
		WithHint("what was done is for its hosts as they were then; start another run: %s", r.AnotherCommand())
}

// DefaultSSHWait bounds step 2 unless `--ssh-wait` says otherwise.
const DefaultSSHWait = 5 * time.Minute

// RunSpec is what a person asked for. It is validated when the run is created,
// never when a step executes.
type RunSpec struct {
	Playbook        PlaybookRef   `json:"playbook"`
	OnboardPlaybook *PlaybookRef  `json:"onboard_playbook,omitempty"` // nil: the seeded one
	Args            []string      `json:"args,omitempty"`             // passed to ansible-playbook in step 4, from an allow-list
	SSHWait         time.Duration `json:"ssh_wait_ns,omitempty"`      // nanoseconds in JSON; 0 for a handoff, which does not wait
	Egress          []int         `json:"egress,omitempty"`           // TCP ports besides 22
	SSHIdentities   []string      `json:"ssh_identities,omitempty"`   // absolute paths on the daemon's host
	AcceptLost      bool          `json:"accept_lost,omitempty"`      // go on although creates may be lost

	// Vars are extra variables of step 4, a JSON object. Strings in them are
	// data: a template is not evaluated.
	Vars json.RawMessage `json:"vars,omitempty"`
	// Revision is an opaque text that makes the same work new work when it
	// changes: a digest of a resource's triggers.
	Revision string `json:"revision,omitempty"`
}

// PlaybookRef names a playbook inside an uploaded snapshot.
type PlaybookRef struct {
	Path   string `json:"path"`   // as the person named it, absolute, for display
	Entry  string `json:"entry"`  // relative to the snapshot's root, slash-separated
	Digest string `json:"digest"` // the snapshot's, `sha256:<hex>`
}

// Validate reports every mistake in s, for a run of that kind, together, as one
// [CodeInvalid] error.
func (s RunSpec) Validate(kind RunKind) error {
	var m Mistakes
	s.Playbook.validate(&m, "playbook")
	switch {
	case s.OnboardPlaybook == nil:
	case kind == RunHandoff:
		m.Addf("a handoff onboards nobody: leave the onboarding playbook out")
	default:
		s.OnboardPlaybook.validate(&m, "onboard playbook")
	}
	switch {
	case kind == RunHandoff && s.SSHWait != 0:
		m.Addf("a handoff does not wait for SSH: leave --ssh-wait out")
	case kind != RunHandoff && (s.SSHWait <= 0 || s.SSHWait > 24*time.Hour):
		m.Addf("--ssh-wait %s is not above 0s and at most 24h", s.SSHWait)
	}
	m.egress(s.Egress)
	for _, f := range s.SSHIdentities {
		m.absolute("--ssh-identity", f)
	}
	m.Add(ValidateVars(s.Vars))
	return m.Err()
}

// egress records what is no TCP port.
func (m *Mistakes) egress(ports []int) {
	for _, p := range ports {
		if p < 1 || p > 65535 {
			m.Addf("--egress %d is not a TCP port (1 to 65535)", p)
		}
	}
}

func (p PlaybookRef) validate(m *Mistakes, what string) {
	switch {
	case p.Entry == "" || !filepath.IsLocal(p.Entry):
		m.Addf("%s %q does not lie inside its snapshot", what, p.Entry)
	case strings.HasPrefix(p.Entry, "-"):
		m.Addf("%s %q begins with a dash", what, p.Entry)
	}
	if _, ok := ParseSnapshotDigest(p.Digest); !ok {
		m.Addf("%s digest %q is not sha256:<64 hex digits>", what, p.Digest)
	}
}

// snapshotDigest is the form of a snapshot's digest.
var snapshotDigest = regexp.MustCompile(`^sha256:([0-9a-f]{64})$`)

// ParseSnapshotDigest returns the hex digits of a snapshot's digest, and whether
// it has the form of one.
func ParseSnapshotDigest(digest string) (hex string, ok bool) {
	m := snapshotDigest.FindStringSubmatch(digest)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// Peer is who asked, from the socket's peer credentials.
type Peer struct {
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	PID  int    `json:"pid,omitempty"`
	Name string `json:"name,omitempty"` // the user's name, where the daemon's host knows it
}

// NewRun asks for a run.
type NewRun struct {
	Key       string // idempotency key: the same key with the same content is the same run; empty: none
	Kind      RunKind
	Workspace string
	Spec      RunSpec
	By        Peer

	Resource bool       // an exocomp_provision asks
	Origin   StepOrigin // who does the work of step 1; empty: the run
}

// ResumeRun asks to continue a failed run at its failed step or, with From, for
// a new run that takes over what this one did before a step.
type ResumeRun struct {
	Run  RunID
	Spec RunSpec // replaces the run's own
	By   Peer
	// From is the first step that the new run does itself; empty: the run itself
	// goes on.
	From StepKind
	// FailedOnly leaves out the hosts for which the failed step has done its work.
	FailedOnly bool
}

// RunFilter selects runs, newest first; empty fields select all.
type RunFilter struct {
	Workspace string
	State     RunState
	Before    RunID // only runs that are older than this one
	Limit     int   // 0: no limit
}
