package orchestrator

import (
	"strconv"
	"time"
)

// LogRetention is how long the log of an attempt is kept, and with it the
// progress of jobs, the playbook snapshots of finished runs and what became of
// the instants of schedules.
const LogRetention = 30 * 24 * time.Hour

// JobKind names what a job executes.
type JobKind string

const (
	// JobStep is an attempt of a run's step.
	JobStep JobKind = "step"
	// JobWorkspaceApply is a standalone apply and capture.
	JobWorkspaceApply JobKind = "workspace-apply"
	// JobHostOnboard is a standalone onboarding of some hosts.
	JobHostOnboard JobKind = "host-onboard"
	// JobLeavePlay is the playbook that an `exocomp_provision` runs when it is
	// destroyed.
	JobLeavePlay JobKind = "leave-play"
	// JobPlaybookRun is a playbook against a standing inventory, outside any
	// chain: `exocomp playbook run`, or a schedule's fire.
	JobPlaybookRun JobKind = "playbook-run"
)

// JobKinds lists every kind.
var JobKinds = []JobKind{JobStep, JobWorkspaceApply, JobHostOnboard, JobLeavePlay, JobPlaybookRun}

// JobState is where a job stands.
type JobState string

const (
	JobQueued    JobState = "queued"
	JobRunning   JobState = "running"
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
	// JobInterrupted: a crash cut it short. A step's is re-armed as a new job;
	// a standalone one waits for `exocomp jobs redrive`.
	JobInterrupted JobState = "interrupted"
)

// JobStates lists every state.
var JobStates = []JobState{
	JobQueued, JobRunning, JobSucceeded, JobFailed, JobCancelled, JobInterrupted,
}

// Final reports whether the job will not run any more.
func (s JobState) Final() bool { return s != JobQueued && s != JobRunning }

// Job is one execution on the one queue.
type Job struct {
	ID        JobID    `json:"id,omitempty"`
	Kind      JobKind  `json:"kind"`
	State     JobState `json:"state"`
	Workspace string   `json:"workspace,omitempty"`
	Run       RunID    `json:"run,omitempty"`       // empty for a standalone job
	Step      int      `json:"step,omitempty"`      // the step's sequence number; 0 for a standalone job
	StepKind  StepKind `json:"step_kind,omitempty"` // empty for a standalone job
	Spec      JobSpec  `json:"spec"`
	Attempt   Attempt  `json:"attempt"`

	Phase           string    `json:"phase,omitempty"`            // the newest supervised tool whose intent is durable, or empty
	CancelRequested bool      `json:"cancel_requested,omitempty"` // a person asked for the end
	CancelForce     bool      `json:"cancel_force,omitempty"`     // and would not wait for tofu to save its state
	Failure         *Failure  `json:"failure,omitempty"`          // set iff failed, cancelled or interrupted
	Report          *Report   `json:"report,omitempty"`
	Redrives        JobID     `json:"redrives,omitempty"`    // the interrupted job that this one runs again, or empty
	RedrivenBy      JobID     `json:"redriven_by,omitempty"` // the job that runs this one again, or empty
	SubmittedBy     Peer      `json:"submitted_by,omitzero"`
	CreatedAt       time.Time `json:"created_at,omitzero"`
	StartedAt       time.Time `json:"started_at,omitzero"`  // zero before it runs
	FinishedAt      time.Time `json:"finished_at,omitzero"` // set iff the state is final
}

// Work names what the job does: its step's kind, or its own where it stands
// alone.
func (j Job) Work() string {
	if j.StepKind != "" {
		return string(j.StepKind)
	}
	return string(j.Kind)
}

// Attempt is one execution's identity.
type Attempt struct {
	Number int       `json:"number"`       // 1 for the first of its step or redrive chain
	ID     AttemptID `json:"id,omitempty"` // names its directories
	Token  Secret    `json:"-"`            // stands only in the ledger, the job's environment and its result
}

// JobSpec is what a standalone job was asked to do. A step's job has none: its
// run's [RunSpec] says.
type JobSpec struct {
	Hosts         []string  `json:"hosts,omitempty"`          // host-onboard: names in the workspace's inventory
	Rotate        bool      `json:"rotate,omitempty"`         // host-onboard: replace changed pins
	AcceptLost    bool      `json:"accept_lost,omitempty"`    // workspace-apply
	SSHIdentities []string  `json:"ssh_identities,omitempty"` // host-onboard: absolute paths
	RefreshOnly   bool      `json:"refresh_only,omitempty"`   // workspace-apply: capture the outputs, apply nothing
	Watched       bool      `json:"watched,omitempty"`        // workspace-apply: nobody asked for it but a change of the watched configuration
	Play          *PlaySpec `json:"play,omitempty"`           // leave-play, playbook-run
	Args          []string  `json:"args,omitempty"`           // playbook-run: passed to ansible-playbook, from an allow-list
	Egress        []int     `json:"egress,omitempty"`         // playbook-run: TCP ports besides 22
	NoAdmit       bool      `json:"no_admit,omitempty"`       // playbook-run: refuse hosts that are not admitted
	KeepGoing     bool      `json:"keep_going,omitempty"`     // playbook-run: play against the others where one cannot be admitted
	Schedule      string    `json:"schedule,omitempty"`       // the schedule that fired it, or empty
}

// AgainCommand is the command that has the work of a [JobPlaybookRun] done once
// more.
func (j Job) AgainCommand() string {
	s := j.Spec
	if s.Schedule != "" {
		return runNow + ShellQuote(s.Schedule)
	}
	words := []string{"exocomp", "playbook", "run", s.Play.Playbook.Path, "--inventory", InventoryName(j.Workspace)}
	return ShellCommand(append(words, s.Flags()...)...)
}

// Flags are the words of `exocomp playbook run` that say what s says besides the
// playbook and the inventory.
func (s JobSpec) Flags() (words []string) {
	for _, p := range s.Egress {
		words = append(words, "--egress", strconv.Itoa(p))
	}
	if s.Play != nil {
		for _, f := range s.Play.SSHIdentities {
			words = append(words, "--ssh-identity", f)
		}
	}
	if s.NoAdmit {
		words = append(words, "--no-admit")
	}
	if s.KeepGoing {
		words = append(words, "--keep-going")
	}
	if len(s.Args) > 0 {
		words = append(append(words, "--"), s.Args...)
	}
	return words
}

// ValidatePlaybookRun reports every mistake in the spec of a
// [JobPlaybookRun] together, as one [CodeInvalid] error. What stands in Args is
// looked at by the driver of ansible-playbook.
func (s JobSpec) ValidatePlaybookRun() error {
	var m Mistakes
	if s.Play == nil {
		m.Addf("no playbook is named")
	} else {
		m.Add(s.Play.Validate())
	}
	m.egress(s.Egress)
	return m.Err()
}

// Turn is a place in a workspace's queue, first in, first out. The oldest open
// turn holds the workspace: only its run's steps, or its job, may start.
type Turn struct {
	Seq       int64
	Workspace string
	Run       RunID // exactly one of Run and Job is set
	Job       JobID
}

// NewJob asks for a standalone job.
type NewJob struct {
	Key       string // idempotency key, as of a [NewRun]
	Kind      JobKind
	Workspace string
	Spec      JobSpec
	Why       string // one line for its event, where it is not a person's wish
	By        Peer
}

// JobFilter selects jobs, newest first; empty fields select all.
type JobFilter struct {
	Workspace string
	Run       RunID
	State     JobState
	Limit     int // 0: no limit
}
