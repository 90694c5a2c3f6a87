package rpc

import (
	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

func inventoryToWire(i orchestrator.Inventory) *exocompv1.Inventory {
	return &exocompv1.Inventory{
		Workspace: i.Workspace,
		Digest:    i.Digest,
		Content:   i.Content,
		Path:      i.Path,
		Hosts:     i.Hosts,
		Captured:  int64(i.Captured),
		JobId:     string(i.Job),
		UpdatedAt: timeToWire(i.UpdatedAt),
	}
}

func inventoryFromWire(i *exocompv1.Inventory) orchestrator.Inventory {
	return orchestrator.Inventory{
		Workspace: i.GetWorkspace(),
		Digest:    i.GetDigest(),
		Content:   i.GetContent(),
		Path:      i.GetPath(),
		Hosts:     i.GetHosts(),
		Captured:  int(i.GetCaptured()),
		Job:       orchestrator.JobID(i.GetJobId()),
		UpdatedAt: timeFromWire(i.GetUpdatedAt()),
	}
}

func inventoryViewToWire(v InventoryView) *exocompv1.GetInventoryResponse {
	return &exocompv1.GetInventoryResponse{
		Inventory: inventoryToWire(v.Inventory),
		Published: publishedStates.wire(v.Published),
		Hosts:     convert(v.Hosts, inventoryHostToWire),
		Admission: admissionSettingsToWire(v.Admission),
	}
}

func inventoryViewFromWire(v *exocompv1.GetInventoryResponse) InventoryView {
	return InventoryView{
		Inventory: inventoryFromWire(v.GetInventory()),
		Published: publishedStates.domain(v.GetPublished()),
		Hosts:     convert(v.GetHosts(), inventoryHostFromWire),
		Admission: admissionSettingsFromWire(v.GetAdmission()),
	}
}

func admissionSettingsToWire(s AdmissionSettings) *exocompv1.AdmissionSettings {
	return &exocompv1.AdmissionSettings{
		RunId:           string(s.Run),
		PinOnly:         s.PinOnly,
		SshWait:         durationToWire(s.SSHWait),
		OnboardPlaybook: playbookToWire(s.OnboardPlaybook),
		SshIdentities:   s.SSHIdentities,
	}
}

func admissionSettingsFromWire(s *exocompv1.AdmissionSettings) AdmissionSettings {
	return AdmissionSettings{
		Run:             orchestrator.RunID(s.GetRunId()),
		PinOnly:         s.GetPinOnly(),
		SSHWait:         s.GetSshWait().AsDuration(),
		OnboardPlaybook: optional(s.GetOnboardPlaybook(), playbookFromWire),
		SSHIdentities:   s.GetSshIdentities(),
	}
}

func inventoryHostToWire(h InventoryHost) *exocompv1.InventoryHost {
	return &exocompv1.InventoryHost{
		Name:        h.Name,
		Address:     h.Address,
		Port:        portToWire(h.Port),
		User:        h.User,
		Connection:  h.Connection,
		Groups:      h.Groups,
		AdmittedAt:  timeToWire(h.AdmittedAt),
		Login:       logins.wire(h.Login),
		Fingerprint: h.Fingerprint,
	}
}

func inventoryHostFromWire(h *exocompv1.InventoryHost) InventoryHost {
	return InventoryHost{
		Name:        h.GetName(),
		Address:     h.GetAddress(),
		Port:        portFromWire(h.GetPort()),
		User:        h.GetUser(),
		Connection:  h.GetConnection(),
		Groups:      h.GetGroups(),
		AdmittedAt:  timeFromWire(h.GetAdmittedAt()),
		Login:       logins.domain(h.GetLogin()),
		Fingerprint: h.GetFingerprint(),
	}
}
