package rpc

// ContractVersion is the contract that this package speaks, on both ends.
// Within one version calls and fields are only added; a new value of a state
// or kind, which an older client could not tell from an error, needs a new one.
const ContractVersion = 1

// MaxMessage bounds one message in either direction, in bytes.
const MaxMessage = 64 << 20

// Service is everything that a client can ask of the daemon. Its methods are
// documented, with the codes that they answer, in proto/exocomp/v1.
//
// The daemon implements it, and so does [Client]. A method that queues work
// takes an idempotency key: the same key and content answer with the same run
// or job, the same key with other content is [orchestrator.CodeConflict]. The
// server refuses an empty key; Client replaces one by a random key.
type Service interface {
	Daemon
	Workspaces
	Runs
	Provisions
	Playbooks
	Jobs
	Inventories
	Hosts
	Snapshots
	Schedules
	Events
}
