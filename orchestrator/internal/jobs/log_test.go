package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

func diskUse(t *testing.T, path string) (used, size int64) {
	t.Helper()
	var s syscall.Stat_t
	if err := syscall.Stat(path, &s); err != nil {
		t.Fatal(err)
	}
	return s.Blocks * 512, s.Size
}

// testLog returns a writer and a reader of the same log.
func testLog(t *testing.T) (logWriter, *Log) {
	t.Helper()
	data := t.TempDir()
	if err := os.MkdirAll(ControlDir(data, "abcdefgh"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := OpenLog(data, "abcdefgh")
	if err != nil {
		t.Fatal(err)
	}
	return logWriter{l.dir}, l
}

// readAll reads a log in small pieces from off.
func readAll(t *testing.T, l *Log, off int64) (string, int64) {
	t.Helper()
	var b strings.Builder
	for buf := make([]byte, 4096); ; {
		n, next, err := l.Read(buf, off)
		if errors.Is(err, io.EOF) {
			return b.String(), off
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Write(buf[:n])
		off = next
	}
}

func TestLogKeepsHeadAndTail(t *testing.T) {
	w, l := testLog(t)
	line := bytes.Repeat([]byte("x"), 999)
	var total int64
	for i := 0; i < 40_000; {
		var chunk []byte
		for end := i + 1 + i%40; i < min(end, 40_000); i++ {
			chunk = fmt.Appendf(chunk, "%06d%s\n", i, line[:993])
		}
		n, err := w.Write(chunk)
		if err != nil {
			t.Fatal(err)
		}
		total += int64(n)
	}
	if size, err := l.Size(); err != nil || size != total {
		t.Errorf("size = %d, %v, want %d", size, err, total)
	}
	got, end := readAll(t, l, 0)
	if end != total {
		t.Errorf("the reader ended at %d, want %d", end, total)
	}
	if len(got) > 16<<20+minLogRead {
		t.Errorf("%d bytes are kept, want at most 16 MiB", len(got))
	}
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	marks := 0
	for _, l := range lines {
		if strings.HasPrefix(l, "[exocomp: ") {
			marks++
		} else if len(l) != 999 {
			t.Fatalf("a line was cut: %.40q", l)
		}
	}
	if marks != 1 || !strings.HasPrefix(lines[0], "000000") || !strings.HasPrefix(lines[len(lines)-1], "039999") {
		t.Errorf("%d marks, from %.6s to %.6s", marks, lines[0], lines[len(lines)-1])
	}
	var gone int
	if _, err := fmt.Sscanf(got[strings.Index(got, "[exocomp"):], "[exocomp: %d bytes", &gone); err != nil {
		t.Fatal(err)
	}
	if kept := len(got) - strings.Index(got[strings.Index(got, "[exocomp"):], "\n") - 1; gone+kept != int(total) {
		t.Errorf("%d bytes are left out and %d kept, of %d", gone, kept, total)
	}
}

func TestLogReaderGoesOnWhereItWas(t *testing.T) {
	w, l := testLog(t)
	if _, off, err := l.Read(make([]byte, minLogRead), 0); off != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("an empty log reads %d, %v", off, err)
	}
	if _, _, err := l.Read(make([]byte, 10), 0); !errors.Is(err, io.ErrShortBuffer) {
		t.Errorf("a short buffer gives %v", err)
	}
	if _, err := w.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	_, off := readAll(t, l, 0)
	waited := make(chan error, 1)
	go func() { waited <- l.Wait(t.Context(), off) }()
	if _, err := w.Write([]byte("two\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	if got, _ := readAll(t, l, off); got != "two\n" {
		t.Errorf("went on with %q", got)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrShutdown)
	if err := l.Wait(ctx, 8); !errors.Is(err, ErrShutdown) {
		t.Errorf("Wait = %v, want the cause", err)
	}
}

func TestLogTakesSeveralWriters(t *testing.T) {
	w, l := testLog(t)
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 500 {
				if _, err := w.Write(bytes.Repeat([]byte{byte('a' + i)}, 3000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if got, _ := readAll(t, l, 0); len(got) != 4*500*3000 {
		t.Errorf("%d bytes, want %d", len(got), 4*500*3000)
	}
}

func TestOpenLogOfNoAttempt(t *testing.T) {
	if _, err := OpenLog(t.TempDir(), "abcdefgh"); orchestrator.CodeOf(err) != orchestrator.CodeNotFound {
		t.Errorf("error = %v, want not found", err)
	}
}

func TestPruneKeepsWhatIsYoungOrLivesOrRuns(t *testing.T) {
	data := t.TempDir()
	now := time.Now()
	old := now.Add(-2 * orchestrator.LogRetention)
	var lock *os.File
	for _, name := range []string{"old", "young", "live", "kept"} {
		c := control{filepath.Join(ControlDir(data, orchestrator.AttemptID(name)), "play")}
		if err := os.MkdirAll(c.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := c.tryLock(true)
		if err != nil {
			t.Fatal(err)
		}
		if name == "live" {
			lock = l
		} else {
			closeLock(l)
		}
		if name == "young" {
			continue
		}
		for _, p := range []string{c.lockPath(), c.dir, filepath.Dir(c.dir)} {
			if err := os.Chtimes(p, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer closeLock(lock)
	if err := Prune(t.Context(), data, now.Add(-orchestrator.LogRetention), map[orchestrator.AttemptID]bool{"kept": true}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(controlRoot(data))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 3 || entries[0].Name() != "kept" || entries[1].Name() != "live" || entries[2].Name() != "young" {
		t.Errorf("kept %v, want those that a running job needs, that live, or are young", entries)
	}
	if err := Prune(t.Context(), t.TempDir(), now, nil); err != nil {
		t.Errorf("without any log: %v", err)
	}
}
