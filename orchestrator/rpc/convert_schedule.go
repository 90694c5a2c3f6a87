package rpc

import (
	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

func scheduleToWire(s orchestrator.Schedule) *exocompv1.Schedule {
	return &exocompv1.Schedule{
		Name:           s.Name,
		Kind:           scheduleKinds.wire(s.Kind),
		Workspace:      s.Workspace,
		Cron:           s.Cron,
		Timezone:       s.Timezone,
		ConcurrencyKey: s.ConcurrencyKey,
		Playbook:       s.Playbook,
		Args:           s.Args,
		Egress:         convert(s.Egress, portToWire),
		SshIdentities:  s.SSHIdentities,
		NoAdmit:        s.NoAdmit,
		KeepGoing:      s.KeepGoing,
		Paused:         s.Paused,
		CreatedBy:      peerToWire(s.CreatedBy),
		CreatedAt:      timeToWire(s.CreatedAt),
		UpdatedAt:      timeToWire(s.UpdatedAt),
	}
}

func scheduleFromWire(s *exocompv1.Schedule) orchestrator.Schedule {
	return orchestrator.Schedule{
		Name:           s.GetName(),
		Kind:           scheduleKinds.domain(s.GetKind()),
		Workspace:      s.GetWorkspace(),
		Cron:           s.GetCron(),
		Timezone:       s.GetTimezone(),
		ConcurrencyKey: s.GetConcurrencyKey(),
		Playbook:       s.GetPlaybook(),
		Args:           s.GetArgs(),
		Egress:         convert(s.GetEgress(), portFromWire),
		SSHIdentities:  s.GetSshIdentities(),
		NoAdmit:        s.GetNoAdmit(),
		KeepGoing:      s.GetKeepGoing(),
		Paused:         s.GetPaused(),
		CreatedBy:      peerFromWire(s.GetCreatedBy()),
		CreatedAt:      timeFromWire(s.GetCreatedAt()),
		UpdatedAt:      timeFromWire(s.GetUpdatedAt()),
	}
}

func fireToWire(f orchestrator.Fire) *exocompv1.Fire {
	return &exocompv1.Fire{
		Id:         f.ID,
		Schedule:   f.Schedule,
		Workspace:  f.Workspace,
		At:         timeToWire(f.At),
		Manual:     f.Manual,
		State:      fireStates.wire(f.State),
		Reason:     f.Reason,
		JobId:      string(f.Job),
		JobState:   jobStates.wire(f.JobState),
		JobFailure: f.JobFailure,
		By:         peerToWire(f.By),
		RecordedAt: timeToWire(f.RecordedAt),
		DecidedAt:  timeToWire(f.DecidedAt),
	}
}

func fireFromWire(f *exocompv1.Fire) orchestrator.Fire {
	return orchestrator.Fire{
		ID:         f.GetId(),
		Schedule:   f.GetSchedule(),
		Workspace:  f.GetWorkspace(),
		At:         timeFromWire(f.GetAt()),
		Manual:     f.GetManual(),
		State:      fireStates.domain(f.GetState()),
		Reason:     f.GetReason(),
		Job:        orchestrator.JobID(f.GetJobId()),
		JobState:   jobStates.domain(f.GetJobState()),
		JobFailure: f.GetJobFailure(),
		By:         peerFromWire(f.GetBy()),
		RecordedAt: timeFromWire(f.GetRecordedAt()),
		DecidedAt:  timeFromWire(f.GetDecidedAt()),
	}
}

func scheduleViewToWire(v orchestrator.ScheduleView) *exocompv1.ScheduleView {
	return &exocompv1.ScheduleView{
		Schedule: scheduleToWire(v.Schedule), Next: convert(v.Next, timeToWire), Fires: convert(v.Fires, fireToWire),
	}
}

func scheduleViewFromWire(v *exocompv1.ScheduleView) orchestrator.ScheduleView {
	return orchestrator.ScheduleView{
		Schedule: scheduleFromWire(v.GetSchedule()), Next: convert(v.GetNext(), timeFromWire), Fires: convert(v.GetFires(), fireFromWire),
	}
}
