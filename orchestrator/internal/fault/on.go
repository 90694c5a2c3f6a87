//go:build faultpoints

package fault

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Enabled reports whether this binary was built with fault points.
const Enabled = true

// Point kills the process with SIGKILL where EXOCOMP_FAULT names it, as `name`
// or `name:detail`; several are separated by commas. Where EXOCOMP_FAULT_ONCE
// names a file, the fault happens only if that file can be created, so that a
// restarted process passes.
func Point(name, detail string) {
	if !named(os.Getenv("EXOCOMP_FAULT"), name, detail) {
		return
	}
	if once := os.Getenv("EXOCOMP_FAULT_ONCE"); once != "" {
		f, err := os.OpenFile(once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return
		}
		_ = f.Close()
	}
	fmt.Fprintf(os.Stderr, "fault point %s:%s\n", name, detail)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func named(list, name, detail string) bool {
	for want := range strings.SplitSeq(list, ",") {
		if want == name || want == name+":"+detail {
			return true
		}
	}
	return false
}
