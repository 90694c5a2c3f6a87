package rpc

import (
	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

func eventToWire(e orchestrator.Event) *exocompv1.Event {
	return &exocompv1.Event{
		Id:        e.ID,
		At:        timeToWire(e.At),
		Kind:      string(e.Kind),
		Workspace: e.Workspace,
		RunId:     string(e.Run),
		Step:      stepKinds.wire(e.Step),
		JobId:     string(e.Job),
		Host:      e.Host,
		State:     e.State,
		Warning:   e.Warning,
		Message:   e.Message,
		By:        peerToWire(e.By),
	}
}

func eventFromWire(e *exocompv1.Event) orchestrator.Event {
	return orchestrator.Event{
		ID:        e.GetId(),
		At:        timeFromWire(e.GetAt()),
		Kind:      orchestrator.EventKind(e.GetKind()),
		Workspace: e.GetWorkspace(),
		Run:       orchestrator.RunID(e.GetRunId()),
		Step:      stepKinds.domain(e.GetStep()),
		Job:       orchestrator.JobID(e.GetJobId()),
		Host:      e.GetHost(),
		State:     e.GetState(),
		Warning:   e.GetWarning(),
		Message:   e.GetMessage(),
		By:        peerFromWire(e.GetBy()),
	}
}

func eventFilterToWire(f orchestrator.EventFilter) *exocompv1.EventFilter {
	return &exocompv1.EventFilter{
		After:     f.After,
		Workspace: f.Workspace,
		RunId:     string(f.Run),
		JobId:     string(f.Job),
		Security:  f.Security,
		Limit:     int64(f.Limit),
		Newest:    int64(f.Newest),
	}
}

func eventFilterFromWire(f *exocompv1.EventFilter) orchestrator.EventFilter {
	return orchestrator.EventFilter{
		After:     f.GetAfter(),
		Workspace: f.GetWorkspace(),
		Run:       orchestrator.RunID(f.GetRunId()),
		Job:       orchestrator.JobID(f.GetJobId()),
		Security:  f.GetSecurity(),
		Limit:     int(f.GetLimit()),
		Newest:    int(f.GetNewest()),
	}
}
