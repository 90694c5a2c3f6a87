package orchestrator

import (
	"regexp"
	"time"
)

// ScheduleKind says what a schedule starts.
type ScheduleKind string

const (
	// SchedulePlay runs a playbook against the standing inventory: a
	// [JobPlaybookRun].
	SchedulePlay ScheduleKind = "play"
	// ScheduleApply applies the workspace: a [JobWorkspaceApply].
	ScheduleApply ScheduleKind = "apply"
)

// ScheduleKinds lists every kind.
var ScheduleKinds = []ScheduleKind{SchedulePlay, ScheduleApply}

// Schedule starts the same work again and again, at the instants that a cron
// expression names. It names an inventory, never hosts: what an apply adds joins
// at the next instant.
type Schedule struct {
	Name           string       `json:"name"`
	Kind           ScheduleKind `json:"kind"`
	Workspace      string       `json:"workspace"`                 // its standing inventory is the target
	Cron           string       `json:"cron"`                      // six fields, seconds first
	Timezone       string       `json:"timezone,omitempty"`        // IANA name; empty: the zone of the daemon's machine
	ConcurrencyKey string       `json:"concurrency_key,omitempty"` // besides the inventory's name, which is one by itself

	// What follows is of a play.
	Playbook      string   `json:"playbook,omitempty"` // absolute path on the daemon's host, read anew at each fire
	Args          []string `json:"args,omitempty"`     // passed to ansible-playbook, from an allow-list
	Egress        []int    `json:"egress,omitempty"`   // TCP ports besides 22
	SSHIdentities []string `json:"ssh_identities,omitempty"`
	NoAdmit       bool     `json:"no_admit,omitempty"`
	KeepGoing     bool     `json:"keep_going,omitempty"`

	Paused    bool      `json:"paused"`
	CreatedBy Peer      `json:"created_by,omitzero"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

// Target returns the name of the inventory that the schedule is about.
func (s Schedule) Target() string { return InventoryName(s.Workspace) }

// MissedAfter is how late an instant may be noticed and still fire.
const MissedAfter = time.Minute

// FireState is what became of one instant of a schedule.
type FireState string

const (
	// FireWaiting: it is due and about to start, or, with a reason, waits for a
	// fire of one of its keys that goes on. The only state that another follows.
	FireWaiting FireState = "waiting"
	// FireStarted: its job was queued.
	FireStarted FireState = "started"
	// FireSkipped: a chain of the workspace was active, or a person took the
	// schedule away while the fire waited.
	FireSkipped FireState = "skipped"
	// FireCoalesced: another fire of the schedule waited already, and does the
	// same.
	FireCoalesced FireState = "coalesced"
	// FireMissed: it was noticed later than [MissedAfter].
	FireMissed FireState = "missed"
	// FireRefused: failing closed; nothing was queued.
	FireRefused FireState = "refused"
)

// FireStates lists every state.
var FireStates = []FireState{
	FireWaiting, FireStarted, FireSkipped, FireCoalesced, FireMissed, FireRefused,
}

// Fire is one instant of a schedule and what became of it. There is one for
// each instant; of instants that are missed at once, for the oldest 100, the
// last of which counts the others.
type Fire struct {
	ID         int64     `json:"id,omitempty"`
	Schedule   string    `json:"schedule"`
	Workspace  string    `json:"workspace"`
	At         time.Time `json:"at,omitzero"`      // the instant; of a manual one, when it was asked for
	Manual     bool      `json:"manual,omitempty"` // `exocomp schedule run-now`
	State      FireState `json:"state"`
	Reason     string    `json:"reason,omitempty"` // why it was not started, or what it waits for
	Job        JobID     `json:"job,omitempty"`    // set iff started
	JobState   JobState  `json:"job_state,omitempty"`
	JobFailure string    `json:"job_failure,omitempty"` // one line: why its job did not succeed
	By         Peer      `json:"by,omitzero"`           // of a manual one
	RecordedAt time.Time `json:"recorded_at,omitzero"`  // when it was noticed
	DecidedAt  time.Time `json:"decided_at,omitzero"`   // zero while it waits
}

// ScheduleView is a schedule with what came of it and what will.
type ScheduleView struct {
	Schedule Schedule    `json:"schedule"`
	Next     []time.Time `json:"next,omitempty"`  // the next instants; none while it is paused
	Fires    []Fire      `json:"fires,omitempty"` // the newest first
}

// DueFire is an instant of a schedule that has come.
type DueFire struct {
	At     time.Time
	State  FireState // waiting, coalesced or missed
	Reason string    // set iff it does not wait
}

// ScheduleMark is a schedule with the instant up to which its fires are on
// record.
type ScheduleMark struct {
	Schedule Schedule
	Handled  time.Time
}

// RunSchedule asks for a fire now.
type RunSchedule struct {
	Key      string // idempotency key
	Schedule string
	At       time.Time
	By       Peer
}

var (
	scheduleName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)
	concurrencyKey = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,127}$`)
)

// maxCron bounds a cron expression, in bytes.
const maxCron = 256

// Validate reports every mistake in s together, as one [CodeInvalid] error. What
// the cron expression, the time zone and the arguments say is looked at where
// they are read.
func (s Schedule) Validate() error {
	var m Mistakes
	if !scheduleName.MatchString(s.Name) {
		m.Add(Errorf(CodeInvalid, "schedule name %.80q is not allowed", s.Name).
			WithHint("use letters, digits, _, . and -, starting with a letter, at most 63"))
	}
	m.Add(ValidateWorkspaceName(s.Workspace))
	if len(s.Cron) > maxCron {
		m.Addf("--cron is %d bytes long; at most %d are taken", len(s.Cron), maxCron)
	}
	if s.ConcurrencyKey != "" && !concurrencyKey.MatchString(s.ConcurrencyKey) {
		m.Add(Errorf(CodeInvalid, "--concurrency-key %.80q is not allowed", s.ConcurrencyKey).
			WithHint("use letters, digits, _ . : / @ and -, starting with a letter or a digit, at most 128"))
	}
	switch s.Kind {
	case SchedulePlay:
		s.validatePlay(&m)
	case ScheduleApply:
		if s.Playbook != "" || len(s.Args)+len(s.Egress)+len(s.SSHIdentities) > 0 || s.NoAdmit || s.KeepGoing {
			m.Addf("--kind apply runs no playbook: leave away what stands behind --, --egress, --ssh-identity, --no-admit and --keep-going")
		}
	default:
		m.Addf("--kind %q is unknown: use play or apply", s.Kind)
	}
	return m.Err()
}

func (s Schedule) validatePlay(m *Mistakes) {
	if s.Playbook == "" {
		m.Add(Errorf(CodeInvalid, "--kind play needs a playbook").WithHint("name it behind --, such as: -- /srv/play/converge.yml"))
	} else {
		m.absolute("playbook", s.Playbook)
	}
	m.egress(s.Egress)
	for _, f := range s.SSHIdentities {
		m.absolute("--ssh-identity", f)
	}
}
