package orchestrator

import "time"

// EventKind names what happened, `noun.verb`.
type EventKind string

// Event kinds. Security events are those of [EventKind.Security].
const (
	EventDaemonStarted      EventKind = "daemon.started"
	EventDaemonStopped      EventKind = "daemon.stopped"
	EventWorkspaceAdded     EventKind = "workspace.added"
	EventWorkspaceChanged   EventKind = "workspace.changed"
	EventWorkspaceRemoved   EventKind = "workspace.removed"
	EventWorkspaceWatched   EventKind = "workspace.watched" // what became of a watched configuration, but for the apply itself
	EventRunSubmitted       EventKind = "run.submitted"
	EventRunResumed         EventKind = "run.resumed"
	EventRunFinished        EventKind = "run.finished"
	EventStepReleased       EventKind = "step.released"
	EventStepStarted        EventKind = "step.started"
	EventStepFinished       EventKind = "step.finished"
	EventStepRearmed        EventKind = "step.rearmed"
	EventJobQueued          EventKind = "job.queued"
	EventJobStarted         EventKind = "job.started"
	EventJobPhase           EventKind = "job.phase"
	EventJobAdopted         EventKind = "job.adopted"
	EventJobFinished        EventKind = "job.finished"
	EventJobInterrupted     EventKind = "job.interrupted"
	EventJobCancelRequested EventKind = "job.cancel-requested"
	EventJobProgress        EventKind = "job.progress"
	EventInventoryCaptured  EventKind = "inventory.captured"
	EventPinAdded           EventKind = "pin.added"
	EventPinRetired         EventKind = "pin.retired"
	EventPinRotated         EventKind = "pin.rotated"
	EventPinChanged         EventKind = "pin.changed" // a scan met another key than the pinned one
	EventPinRefused         EventKind = "pin.refused" // a scan met another key than the inventory states
	EventHostAdmitted       EventKind = "host.admitted"
	EventLostSuspected      EventKind = "lost.suspected"
	EventLostAccepted       EventKind = "lost.accepted"
	EventLostFound          EventKind = "lost.found"
	EventStateUnlocked      EventKind = "state.unlocked"
	EventDrainStarted       EventKind = "drain.started"
	EventDrainEnded         EventKind = "drain.ended"
	EventCallDenied         EventKind = "call.denied"
	EventProvisionTaken     EventKind = "provision.taken" // a resource has the workspace now
	EventProvisionReleased  EventKind = "provision.released"
	EventProvisionEnded     EventKind = "provision.ended"
	EventPlaybooksVendored  EventKind = "playbooks.vendored"
	EventScheduleAdded      EventKind = "schedule.added"
	EventScheduleChanged    EventKind = "schedule.changed"
	EventSchedulePaused     EventKind = "schedule.paused"
	EventScheduleResumed    EventKind = "schedule.resumed"
	EventScheduleRemoved    EventKind = "schedule.removed"
	EventFireDue            EventKind = "fire.due" // it starts, or waits for another fire of its keys
	EventFireStarted        EventKind = "fire.started"
	EventFireSkipped        EventKind = "fire.skipped"
	EventFireCoalesced      EventKind = "fire.coalesced"
	EventFireMissed         EventKind = "fire.missed"
	EventFireRefused        EventKind = "fire.refused"
)

// Security reports whether the kind belongs to the security stream.
func (k EventKind) Security() bool {
	switch k {
	case EventPinRetired, EventPinRotated, EventPinChanged, EventPinRefused,
		EventLostAccepted, EventStateUnlocked, EventCallDenied:
		return true
	default:
		return false
	}
}

// Event is one line of history: append-only, its id monotonic, written in the
// transaction of the change that it explains.
type Event struct {
	ID        int64     `json:"id,omitempty"`
	At        time.Time `json:"at,omitzero"`
	Kind      EventKind `json:"kind"`
	Workspace string    `json:"workspace,omitempty"` // empty where it concerns none
	Run       RunID     `json:"run,omitempty"`
	Step      StepKind  `json:"step,omitempty"`
	Job       JobID     `json:"job,omitempty"`
	Host      string    `json:"host,omitempty"`
	State     string    `json:"state,omitempty"` // the state that the run, step or job is in now, or empty
	Warning   bool      `json:"warning,omitempty"`
	Message   string    `json:"message,omitempty"` // for people, one line, no secret
	By        Peer      `json:"by,omitzero"`
}

// EventFilter selects events; empty fields select all.
type EventFilter struct {
	After     int64 // only events with a greater id
	Workspace string
	Run       RunID
	Job       JobID
	Security  bool // only the security stream
	Newest    int  // only the newest so many of these; 0: all
	Limit     int  // the oldest so many of these; 0: no limit
}
