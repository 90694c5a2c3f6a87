package jobs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/secrets"
)

// outputChunk is copied from the tool's output to the log at once.
const outputChunk = 64 << 10

// releaseEvery is how much of an output that is not kept may stand on disk
// behind the log.
const releaseEvery = 4 << 20

// output is the tool's standard output and error: a file, so that the tool
// never meets a reader that died, whose end is copied to the attempt's log.
type output struct {
	sup  *supervisor
	file *os.File // the tool's end, appending
	end  chan struct{}
	done chan struct{}
}

// openOutput makes the file and begins to copy it, redacted and made valid
// UTF-8, to the log.
func (s *supervisor) openOutput() (*output, error) {
	path := s.c.stdoutPath()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, durable.PrivateFile)
	if err != nil {
		return nil, fmt.Errorf("open the tool's output: %w", err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0) // written to where it is released
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("open the tool's output: %w", err)
	}
	o := &output{sup: s, file: file, end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(o.done)
		defer func() { _ = reader.Close() }()
		o.copy(reader)
	}()
	return o, nil
}

// finish is called when nothing writes any more. It copies the rest and keeps
// the file, durably, or removes it.
func (o *output) finish() {
	close(o.end)
	<-o.done
	if o.sup.spec.KeepStdout {
		if err := o.file.Sync(); err != nil {
			o.sup.slog.Error("sync the tool's output", "err", err)
		}
	} else if err := os.Remove(o.file.Name()); err != nil {
		o.sup.slog.Error("remove the tool's output", "err", err)
	}
	_ = o.file.Close()
}

// copy follows the file until it has all of it after the end.
func (o *output) copy(r *os.File) {
	dst := &lossyWriter{w: logWriter{o.sup.spec.LogDir}, sup: o.sup}
	buffered := bufio.NewWriterSize(dst, outputChunk)
	valid := transform.NewWriter(buffered, unicode.UTF8.NewDecoder())
	_, _ = fmt.Fprintf(buffered, "== %s ==\n", o.sup.spec.Phase)
	_ = buffered.Flush()
	said := &messageWriter{w: valid}
	var out io.Writer = valid
	if o.sup.spec.Messages {
		out = said
	}
	redacted := secrets.NewRedactor(o.sup.secrets()).Writer(out)

	w := watch(o.sup.c.dir)
	defer w.close()
	buf := make([]byte, outputChunk)
	var read, released int64
	last := byte('\n')
	for ended := false; ; {
		n, err := r.Read(buf)
		if n > 0 {
			read, last = read+int64(n), buf[n-1]
			_, _ = redacted.Write(buf[:n])
			if !o.sup.spec.KeepStdout && read-released >= releaseEvery {
				// A courtesy to the disk; not every file system can.
				_ = unix.Fallocate(int(r.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, released, read-released)
				released = read
			}
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			o.sup.slog.Error("read the tool's output", "err", err)
		}
		_ = buffered.Flush()
		if ended {
			break
		}
		select {
		case <-o.end:
			ended = true // whatever was written before is read once more
		case <-w.changes:
		case <-w.tick():
		}
	}
	_ = redacted.Close()
	_ = said.Close()
	_ = valid.Close()
	if last != '\n' {
		_ = buffered.WriteByte('\n')
	}
	_ = buffered.Flush()
}

// lossyWriter writes to the log and never fails: a full disk costs lines, not
// the job.
type lossyWriter struct {
	w    io.Writer
	sup  *supervisor
	lost bool
}

func (l *lossyWriter) Write(p []byte) (int, error) {
	_, err := l.w.Write(p)
	if err != nil && !l.lost {
		l.sup.slog.Error("lines of the log are lost", "err", err)
	}
	l.lost = err != nil
	return len(p), nil
}
