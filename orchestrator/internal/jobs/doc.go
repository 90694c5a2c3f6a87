// Package jobs executes the one queue and lets tools outlive the daemon.
//
// A [Pool] claims jobs and gives each, as an [Attempt], to the [Handler] of the
// engine. A handler runs its tools by [Attempt.Exec]: each is a phase with a
// control directory and a supervisor of its own, a process in its own session
// that holds the phase's lock for as long as it lives and leaves a result file.
// After a crash the pool calls the handler again for the same attempt; Exec
// reads from lock and result what happened and adopts, returns or gives up.
//
//	<data>/control/<attempt>/log            the attempt's log, redacted; more of it in log.<offset>
//	<data>/control/<attempt>/<phase>/lock   held by the supervisor
//	                                /process.json   who the supervisor and the tool are
//	                                /stdout         what the tool prints, raw, until the job is over
//	                                /events         what it writes to its event descriptor, likewise
//	                                /room           kept for the result where the disk is full
//	                                /terminated     the graceful tool was told to end
//	                                /result.json    how it ended
//	                                /supervisor.log
//	<runtime>/work/<attempt>/               home/ tmp/ cp/ agent.sock: the tool's own
//
// Linux only.
package jobs
