//go:build faultpoints

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Enabled reports whether this binary was built with fault points.
const Enabled = true

// Point kills the process with SIGKILL where EXOCOMP_FAULT names it, as `name`
// or `name:detail`; several are separated by commas. Where EXOCOMP_FAULT_ONCE
// names a file, the fault happens only if that file can be created, so that a
// restarted process passes; where it names a directory, that holds for each
// entry of EXOCOMP_FAULT by itself, with a file of its name in it.
func Point(name, detail string) {
	entry, named := find(os.Getenv("EXOCOMP_FAULT"), name, detail)
	if !named {
		return
	}
	if once := os.Getenv("EXOCOMP_FAULT_ONCE"); once != "" {
		if info, err := os.Stat(once); err == nil && info.IsDir() {
			once = filepath.Join(once, entry)
		}
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

// find returns the entry of list that names the point.
func find(list, name, detail string) (entry string, named bool) {
	for want := range strings.SplitSeq(list, ",") {
		if want == name || want == name+":"+detail {
			return want, true
		}
	}
	return "", false
}
