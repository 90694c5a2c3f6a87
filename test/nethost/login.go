package nethost

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Login is one accepted login on a host.
type Login struct {
	Time        time.Time // when sshd said so
	User        string
	Method      string // publickey, as a rule
	Fingerprint string // of the key: SHA256:…
	From        string // the client's address
}

var accepted = regexp.MustCompile(`^Accepted (\S+) for (\S+) from (\S+) port \d+ ssh2(?:: \S+ (SHA256:\S+))?`)

// Logins returns the accepted logins so far, in order, counted on the host and
// therefore independent of what a client believes. A login whose client has
// had an answer is among them.
func (h *Host) Logins() []Login {
	h.log.sync()
	var logins []Login
	for _, l := range h.log.snapshot() {
		if m := accepted.FindStringSubmatch(l.text); m != nil {
			logins = append(logins, Login{Time: l.time, Method: m[1], User: m[2], From: m[3], Fingerprint: m[4]})
		}
	}
	return logins
}

// SSHDLog returns everything sshd has logged so far, each line with its time.
// It is complete in the sense of [Host.Logins] and remains readable after Close.
func (h *Host) SSHDLog() string {
	h.log.sync()
	return h.log.text()
}

// An sshdLog collects what the sshds of a host write to standard error. It goes
// through a pipe, not a file, because sshd does not write the time itself.
type sshdLog struct {
	input *os.File      // sshd's end
	done  chan struct{} // closed when the reader has ended

	mu      sync.Mutex // guards what follows
	lines   []logLine
	changed chan struct{} // closed and replaced at every line
	marks   int           // the marks that were written
	marked  int           // the marks that came out
}

type logLine struct {
	time time.Time
	text string
}

// markPrefix begins the lines that sync writes. No line of sshd does.
const markPrefix = "\x00mark"

func openLog() (*sshdLog, error) {
	output, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l := &sshdLog{input: input, changed: make(chan struct{}), done: make(chan struct{})}
	go l.read(output)
	return l, nil
}

func (l *sshdLog) read(output *os.File) {
	defer close(l.done)
	defer output.Close()
	r := bufio.NewReader(output)
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			return
		}
		text = strings.TrimRight(text, "\r\n")
		l.mu.Lock()
		if strings.HasPrefix(text, markPrefix) {
			l.marked++
		} else {
			l.lines = append(l.lines, logLine{time.Now(), text})
		}
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
	}
}

// close ends the log. Every sshd that writes to it must have ended.
func (l *sshdLog) close() {
	l.input.Close()
	<-l.done
}

// sync waits until everything that was in the pipe has been read: it sends a
// mark after it and waits for that.
func (l *sshdLog) sync() {
	l.mu.Lock()
	l.marks++
	want := l.marks
	l.mu.Unlock()
	// Not under the lock: a full pipe is emptied by the reader, which needs it.
	if _, err := l.input.WriteString(markPrefix + "\n"); err != nil {
		return // closed, and therefore read to its end
	}
	for {
		l.mu.Lock()
		marked, changed := l.marked, l.changed
		l.mu.Unlock()
		if marked >= want {
			return
		}
		select {
		case <-changed:
		case <-l.done:
			return
		}
	}
}

// await waits for a line, from the given index on, that begins with prefix.
func (l *sshdLog) await(ctx context.Context, from int, prefix string) error {
	for {
		l.mu.Lock()
		lines, changed := l.lines[from:], l.changed
		l.mu.Unlock()
		if slices.ContainsFunc(lines, func(line logLine) bool { return strings.HasPrefix(line.text, prefix) }) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *sshdLog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines)
}

func (l *sshdLog) snapshot() []logLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *sshdLog) text() string {
	var b strings.Builder
	for _, line := range l.snapshot() {
		fmt.Fprintf(&b, "%s %s\n", line.time.Format("15:04:05.000"), line.text)
	}
	return b.String()
}
