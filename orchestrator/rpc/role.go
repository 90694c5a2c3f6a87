package rpc

import exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"

// Role is what a token may do.
type Role string

const (
	// RoleOperator may do everything.
	RoleOperator Role = "operator"
	// RoleReader may read inventories, pins and the status of runs and schedules.
	RoleReader Role = "reader"
)

// may reports whether a token of role r may call a method that needs role need.
func (r Role) may(need Role) bool {
	return r == RoleOperator || r == RoleReader && need == RoleReader
}

// methodRoles says for each method of the contract the least role that may
// call it. What is not in it, go-plugin's broker and stdio services and gRPC
// reflection among them, is not offered to anybody.
var methodRoles = map[string]Role{
	exocompv1.DaemonService_Handshake_FullMethodName: RoleReader,
	exocompv1.DaemonService_GetStatus_FullMethodName: RoleOperator,
	exocompv1.DaemonService_Drain_FullMethodName:     RoleOperator,

	exocompv1.WorkspaceService_AddWorkspace_FullMethodName:     RoleOperator,
	exocompv1.WorkspaceService_GetWorkspace_FullMethodName:     RoleOperator,
	exocompv1.WorkspaceService_ListWorkspaces_FullMethodName:   RoleOperator,
	exocompv1.WorkspaceService_RemoveWorkspace_FullMethodName:  RoleOperator,
	exocompv1.WorkspaceService_ApplyWorkspace_FullMethodName:   RoleOperator,
	exocompv1.WorkspaceService_RefreshWorkspace_FullMethodName: RoleOperator,
	exocompv1.WorkspaceService_UnlockWorkspace_FullMethodName:  RoleOperator,

	exocompv1.RunService_SubmitRun_FullMethodName: RoleOperator,
	exocompv1.RunService_GetRun_FullMethodName:    RoleReader,
	exocompv1.RunService_ListRuns_FullMethodName:  RoleReader,
	exocompv1.RunService_ResumeRun_FullMethodName: RoleOperator,
	exocompv1.RunService_CancelRun_FullMethodName: RoleOperator,

	exocompv1.ProvisionService_EnsureRun_FullMethodName:    RoleOperator,
	exocompv1.ProvisionService_EndProvision_FullMethodName: RoleOperator,

	exocompv1.PlaybookService_SubmitPlaybook_FullMethodName:     RoleOperator,
	exocompv1.PlaybookService_VendorRequirements_FullMethodName: RoleOperator,

	exocompv1.JobService_ListJobs_FullMethodName:   RoleOperator,
	exocompv1.JobService_GetJob_FullMethodName:     RoleOperator,
	exocompv1.JobService_RedriveJob_FullMethodName: RoleOperator,
	exocompv1.JobService_CancelJob_FullMethodName:  RoleOperator,
	exocompv1.JobService_ReadLog_FullMethodName:    RoleOperator,

	exocompv1.InventoryService_ListInventories_FullMethodName:      RoleReader,
	exocompv1.InventoryService_GetInventory_FullMethodName:         RoleReader,
	exocompv1.InventoryService_GetStandingInventory_FullMethodName: RoleReader,

	exocompv1.HostService_ListPins_FullMethodName:       RoleReader,
	exocompv1.HostService_ForgetHost_FullMethodName:     RoleOperator,
	exocompv1.HostService_OnboardHosts_FullMethodName:   RoleOperator,
	exocompv1.HostService_GetFleetKey_FullMethodName:    RoleOperator,
	exocompv1.HostService_GetOnboardVars_FullMethodName: RoleOperator,

	exocompv1.SnapshotService_HasSnapshot_FullMethodName:    RoleOperator,
	exocompv1.SnapshotService_UploadSnapshot_FullMethodName: RoleOperator,

	exocompv1.ScheduleService_AddSchedule_FullMethodName:    RoleOperator,
	exocompv1.ScheduleService_GetSchedule_FullMethodName:    RoleReader,
	exocompv1.ScheduleService_GetFire_FullMethodName:        RoleReader,
	exocompv1.ScheduleService_ListSchedules_FullMethodName:  RoleReader,
	exocompv1.ScheduleService_PauseSchedule_FullMethodName:  RoleOperator,
	exocompv1.ScheduleService_RemoveSchedule_FullMethodName: RoleOperator,
	exocompv1.ScheduleService_RunSchedule_FullMethodName:    RoleOperator,

	exocompv1.EventService_ListEvents_FullMethodName:  RoleOperator,
	exocompv1.EventService_WatchEvents_FullMethodName: RoleOperator,
}
