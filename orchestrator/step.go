package orchestrator

import (
	"slices"
	"time"
)

// StepKind names what a step does.
type StepKind string

const (
	// StepTofuApply plans and applies the workspace and captures its outputs.
	StepTofuApply StepKind = "tofu-apply"
	// StepSSHWait waits, bounded, until every host's SSH port answers.
	StepSSHWait StepKind = "ssh-wait"
	// StepHostOnboard pins host keys and runs the onboarding play.
	StepHostOnboard StepKind = "host-onboard"
	// StepAnsiblePlay runs the user's playbook.
	StepAnsiblePlay StepKind = "ansible-play"
)

// StepKinds lists every kind.
var StepKinds = []StepKind{StepTofuApply, StepSSHWait, StepHostOnboard, StepAnsiblePlay}

// StepState is where a step stands.
type StepState string

const (
	// StepBlocked waits for the step before it, or for the run's turn.
	StepBlocked StepState = "blocked"
	// StepAwaitingApproval waits for a person's decision on its plan.
	StepAwaitingApproval StepState = "awaiting-approval"
	// StepReady is released; its job is queued.
	StepReady StepState = "ready"
	// StepRunning has a live attempt.
	StepRunning StepState = "running"
	// StepSucceeded is final: it is never run again in its run.
	StepSucceeded StepState = "succeeded"
	// StepFailed is final until somebody resumes the run.
	StepFailed StepState = "failed"
	// StepCancelled is final.
	StepCancelled StepState = "cancelled"
)

// StepStates lists every state.
var StepStates = []StepState{
	StepBlocked, StepAwaitingApproval, StepReady, StepRunning,
	StepSucceeded, StepFailed, StepCancelled,
}

// Final reports whether a step in this state has a finish time.
func (s StepState) Final() bool {
	return s == StepSucceeded || s == StepFailed || s == StepCancelled
}

// StepTrigger is what moves a step from one state to the next.
type StepTrigger string

const (
	TriggerRelease StepTrigger = "release" // the step before it succeeded, or the turn came
	TriggerSupply  StepTrigger = "supply"  // the caller did the work of the step
	TriggerTake    StepTrigger = "take"    // another run did the work of the step, and this one takes it over
	TriggerStart   StepTrigger = "start"   // a worker claimed the job
	TriggerPark    StepTrigger = "park"    // the plan needs a person
	TriggerApprove StepTrigger = "approve" // a person said yes
	TriggerSucceed StepTrigger = "succeed"
	TriggerFail    StepTrigger = "fail"
	TriggerCancel  StepTrigger = "cancel"
	TriggerRearm   StepTrigger = "rearm"  // a crash cut the attempt short
	TriggerResume  StepTrigger = "resume" // a person continues a failed run
)

// StepTransition is one row of the state machine.
type StepTransition struct {
	From    StepState
	Trigger StepTrigger
	To      StepState
}

// StepTransitions is the state machine of a step. The ledger's CHECKs and the
// diagram in the documentation are generated from it.
var StepTransitions = []StepTransition{
	{StepBlocked, TriggerRelease, StepReady},
	{StepBlocked, TriggerSupply, StepSucceeded},
	{StepBlocked, TriggerTake, StepSucceeded},
	{StepBlocked, TriggerCancel, StepCancelled},
	{StepReady, TriggerStart, StepRunning},
	{StepReady, TriggerCancel, StepCancelled},
	{StepRunning, TriggerPark, StepAwaitingApproval},
	{StepRunning, TriggerSucceed, StepSucceeded},
	{StepRunning, TriggerFail, StepFailed},
	{StepRunning, TriggerCancel, StepCancelled},
	{StepRunning, TriggerRearm, StepReady},
	{StepAwaitingApproval, TriggerApprove, StepReady},
	{StepAwaitingApproval, TriggerCancel, StepCancelled},
	{StepFailed, TriggerResume, StepReady},
}

// Next returns the state that trigger leads to. The error is [CodeConflict]
// where the state machine has no such transition.
func (s StepState) Next(trigger StepTrigger) (StepState, error) {
	i := slices.IndexFunc(StepTransitions, func(t StepTransition) bool {
		return t.From == s && t.Trigger == trigger
	})
	if i < 0 {
		return "", Errorf(CodeConflict, "a %s step cannot %s", s, trigger)
	}
	return StepTransitions[i].To, nil
}

// A crash re-arms a step until it fails and needs a person's resume.
const (
	// MaxCrashAttempts bounds how often that happens while a tool of the step
	// runs: that it is cut short may be its own doing.
	MaxCrashAttempts = 3
	// MaxCrashes bounds it altogether. Where no tool was begun, the daemon's death
	// says little about the step, and to begin again costs nothing; but a step
	// that ends every daemon must end too.
	MaxCrashes = 10
)

// Step is one link of a run's chain.
type Step struct {
	Seq           int        `json:"seq"` // 1 for the first
	Kind          StepKind   `json:"kind"`
	State         StepState  `json:"state"`
	Origin        StepOrigin `json:"origin,omitempty"`
	TakenFrom     RunID      `json:"taken_from,omitempty"` // the run whose result it is, where this one took it over; or empty
	Attempts      int        `json:"attempts"`             // attempts so far
	CrashAttempts int        `json:"crash_attempts"`       // of those, cut short by a crash since the last resume
	Job           JobID      `json:"job,omitempty"`        // the newest attempt's job, or empty
	Failure       *Failure   `json:"failure,omitempty"`    // set iff failed or cancelled
	Report        *Report    `json:"report,omitempty"`     // what the newest attempt did; nil until it has ended
	StartedAt     time.Time  `json:"started_at,omitzero"`  // of the newest attempt; zero before the first
	FinishedAt    time.Time  `json:"finished_at,omitzero"` // set iff the state is final
	// Only are the hosts that the step deals with since a resume of the failed
	// ones; none: all of the inventory.
	Only []string `json:"only,omitempty"`
}

// StepOrigin says who did the work of a succeeded step.
type StepOrigin string

const (
	// OriginRun: a run, this one unless the step was taken from another.
	OriginRun StepOrigin = "run"
	// OriginCaller: the apply that a provider's resource is part of.
	OriginCaller StepOrigin = "caller"
)

// Failure is why a step or job failed: an [Error] as the ledger keeps it.
type Failure struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Err returns f as an error, nil for nil.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	return &Error{Code: f.Code, Message: f.Message, Hint: f.Hint}
}

// Report is what an attempt did, for people: which hosts, which task failed,
// the last lines. It never carries a secret.
type Report struct {
	Summary   string       `json:"summary,omitempty"`    // one line
	Task      string       `json:"task,omitempty"`       // the failing task
	Hosts     []HostReport `json:"hosts,omitempty"`      // sorted by name
	LastLines []string     `json:"last_lines,omitempty"` // of the log, redacted, at most 20
	Changes   []Change     `json:"changes,omitempty"`    // of an apply: what the plan changed
	Digest    string       `json:"digest,omitempty"`     // of the inventory that an apply captured
}

// HostState is how a host fared in one step.
type HostState string

const (
	HostOK          HostState = "ok"
	HostChanged     HostState = "changed"
	HostFailed      HostState = "failed"
	HostUnreachable HostState = "unreachable"
	HostSkipped     HostState = "skipped" // local, or no task for it
	HostWaiting     HostState = "waiting" // ssh-wait: not ready yet
	HostReady       HostState = "ready"   // ssh-wait: banner read
	HostPinned      HostState = "pinned"  // key recorded or verified
)

// Failed reports whether the step did not do its work on the host.
func (s HostState) Failed() bool {
	return s == HostFailed || s == HostUnreachable || s == HostWaiting
}

// HostReport is one host's line in a [Report].
type HostReport struct {
	Name    string        `json:"name"`
	Address string        `json:"address,omitempty"` // host:port as dialled
	State   HostState     `json:"state"`
	Message string        `json:"message,omitempty"` // the last error, or what was found
	Took    time.Duration `json:"took_ns,omitempty"` // nanoseconds in JSON
	Task    string        `json:"task,omitempty"`    // the task that failed on it
	OK      int           `json:"ok,omitempty"`      // task results
	Changed int           `json:"changed,omitempty"` // task results that changed something
}

// Change is one resource change of a plan or an apply.
type Change struct {
	Address string `json:"address"`
	Action  string `json:"action"` // create, update, delete, replace, forget, import, move
}
