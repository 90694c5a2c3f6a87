package orchestrator

// DaemonStart is what a starting daemon learns about the one before it.
type DaemonStart struct {
	CleanBefore  bool   // the one before stopped in order, or there was none
	SameBoot     bool   // the machine has not booted since
	PreviousBoot string // the boot id of the one before, or empty
}
