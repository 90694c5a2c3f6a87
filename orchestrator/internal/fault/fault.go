// Package fault names the points at which a test may crash a process. In
// ordinary builds [Point] does nothing; a binary built with the tag
// `faultpoints` obeys the environment variable EXOCOMP_FAULT.
package fault

// Point names. A point with a detail reads `name:detail` in EXOCOMP_FAULT, such
// as `after-intent:host-onboard`.
const (
	AfterIntent    = "after-intent"    // the phase is durable, nothing is started
	AfterFork      = "after-fork"      // the supervisor runs, the daemon has not waited yet
	AfterToolExit  = "after-tool-exit" // in the supervisor: the tool ended, no result yet
	AfterResult    = "after-result"    // the result file is durable, the ledger does not know
	AfterRelease   = "after-release"   // the outcome is committed, nothing is published
	BeforePublish  = "before-publish"  // a file copy is about to be written
	AfterPublish   = "after-publish"   // a file copy was written
	BeforePinStore = "before-pin-store"
	FireDue        = "fire-due"      // an instant of a schedule has come, nothing is on record
	FireRecorded   = "fire-recorded" // it is on record and waits
	FirePrepared   = "fire-prepared" // its playbook's snapshot is stored, its job is not queued
	FireStarted    = "fire-started"  // its job is queued
)

// Names lists every point.
var Names = []string{
	AfterIntent, AfterFork, AfterToolExit, AfterResult, AfterRelease,
	BeforePublish, AfterPublish, BeforePinStore,
	FireDue, FireRecorded, FirePrepared, FireStarted,
}
