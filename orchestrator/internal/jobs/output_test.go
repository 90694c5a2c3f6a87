package jobs

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestLogIsRedactedAndValidUTF8(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tool := w.tool(phaseSpec{Phase: "play", Script: `printf 'password is hunt'; sleep 0.2; printf 'er2hunter2\n'; env; printf 'a\377b\303'; echo on stderr >&2; printf 'no end'`})
	tool.Secrets = []orchestrator.Secret{orchestrator.NewSecret("hunter2hunter2")}
	r, err := w.attempt(t).Exec(t.Context(), tool)
	if err != nil {
		t.Fatal(err)
	}
	log := w.log(t)
	if !utf8.ValidString(log) || !strings.Contains(log, "a\uFFFDb\uFFFDon stderr\n") {
		t.Errorf("log = %q, want valid UTF-8", log)
	}
	if !strings.Contains(log, "password is [redacted]\n") || strings.Contains(log, w.token().Reveal()) {
		t.Errorf("log = %q, want neither secret nor token", log)
	}
	if !strings.HasPrefix(log, "== play ==\n") || !strings.HasSuffix(log, "no end\n") {
		t.Errorf("log = %q, want whole lines", log)
	}
	if r.StdoutPath != "" || exists(w.control("play").stdoutPath()) {
		t.Error("the raw output was kept")
	}
}

func TestJournalIsKeptWholeBehindACutLog(t *testing.T) {
	t.Parallel()
	const size = 20 << 20
	w := newWorld(t)
	tool := w.tool(phaseSpec{Phase: "apply", Script: `head -c 20971520 /dev/zero | tr '\0' x; echo; echo last`})
	tool.KeepStdout = true
	var last string
	tool.OnStdout = func(line []byte) { last = string(line) }
	r, err := w.attempt(t).Exec(t.Context(), tool)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(r.StdoutPath); err != nil || info.Size() != int64(size+len("\nlast\n")) {
		t.Errorf("the journal is %v (%v), want all of it", info, err)
	}
	if last != "last" {
		t.Errorf("the last line was %q", last)
	}
	log := w.log(t)
	if len(log) > 17<<20 || !strings.Contains(log, "bytes of the log were left out here]\n") ||
		!strings.HasPrefix(log, "== apply ==\nxxx") || !strings.HasSuffix(log, "x\nlast\n") {
		t.Errorf("the log has %d bytes, begins %.20q and ends %q: want head, mark and tail", len(log), log, log[max(0, len(log)-10):])
	}
	lines := w.attempt(t).LastLines(1)
	if len(lines) != 1 || lines[0] != "last" {
		t.Errorf("last lines = %.40q", lines)
	}
}

func TestOutputThatIsNotKeptGivesItsSpaceBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	done := make(chan error, 1)
	go func() {
		_, err := a.Exec(t.Context(), w.tool(phaseSpec{Phase: "play", Script: `head -c 16777216 /dev/zero | tr '\0' x; touch ready; while [ ! -e go ]; do sleep 0.02; done`}))
		done <- err
	}()
	eventually(t, "the output is there", func() bool { return exists(w.scratch("ready")) })
	eventually(t, "its space is given back", func() bool {
		used, size := diskUse(t, w.control("play").stdoutPath())
		return size == 16<<20 && used < 6<<20
	})
	w.touch(t, "go")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
