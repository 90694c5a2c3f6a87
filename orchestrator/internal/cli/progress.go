package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"golang.org/x/term"
)

// progress shows events as they come: a line each, and on a terminal, below
// them, one line that says what runs now and since when.
type progress struct {
	w    io.Writer
	live bool

	mu    sync.Mutex
	what  string // what runs now, or empty
	last  string // the newest detail of it
	since time.Time
	drawn bool
	stop  chan struct{}
	ended sync.WaitGroup
}

const (
	redraw    = 250 * time.Millisecond
	clearLine = "\r\x1b[K"
	liveWidth = 80 // columns of a terminal that does not say
)

func (a *app) newProgress() *progress {
	p := &progress{w: a.Err, live: a.Terminal, stop: make(chan struct{})}
	if p.live {
		p.ended.Go(p.draw)
	}
	return p
}

// close removes the live line. It may be repeated.
func (p *progress) close() {
	p.mu.Lock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.mu.Unlock()
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

func (p *progress) draw() {
	t := time.NewTicker(redraw)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
			p.mu.Lock()
			p.redraw()
			p.mu.Unlock()
		}
	}
}

func (p *progress) redraw() {
	p.erase()
	if p.what == "" {
		return
	}
	text := fmt.Sprintf("  … %s %s", p.what, time.Since(p.since).Truncate(time.Second))
	if p.last != "" {
		text += "  " + p.last
	}
	// Wider, it would wrap, and only its last row would be erased.
	if r := []rune(text); len(r) >= p.width() {
		text = string(r[:p.width()-2]) + "…"
	}
	_, _ = io.WriteString(p.w, text)
	p.drawn = true
}

// width returns how many columns the terminal has at the moment.
func (p *progress) width() int {
	if f, ok := p.w.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 2 {
			return w
		}
	}
	return liveWidth
}

func (p *progress) erase() {
	if p.drawn {
		_, _ = io.WriteString(p.w, clearLine)
		p.drawn = false
	}
}

// line prints a line that stays.
func (p *progress) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	_, _ = fmt.Fprintln(p.w, printable(fmt.Sprintf(format, args...)))
}

// event shows one event of a run or a job.
func (p *progress) event(e orchestrator.Event) {
	p.mu.Lock()
	switch e.Kind {
	case orchestrator.EventStepStarted, orchestrator.EventJobStarted:
		p.what, p.last, p.since = string(e.Step), "", e.At
		if p.what == "" {
			p.what = string(e.Job)
		}
	case orchestrator.EventStepFinished, orchestrator.EventJobFinished, orchestrator.EventRunFinished, orchestrator.EventJobInterrupted:
		p.what = ""
	case orchestrator.EventJobProgress, orchestrator.EventJobPhase:
		p.last = printable(e.Message)
		if p.live {
			p.mu.Unlock()
			return
		}
	}
	p.mu.Unlock()
	if p.shows(e) {
		p.line("%s  %s%s", e.At.Local().Format("15:04:05"), mark(e), news(e))
	}
}

// news is what an event says. Why a step, a job or a run did not succeed is left
// for the end, where it stands with what belongs to it.
func news(e orchestrator.Event) string {
	switch e.Kind {
	case orchestrator.EventStepFinished, orchestrator.EventJobFinished, orchestrator.EventRunFinished:
		if e.State != string(orchestrator.RunSucceeded) {
			what, _, _ := strings.Cut(e.Message, ": ")
			return what
		}
	}
	return e.Message
}

// shows reports whether an event is a line of its own: what repeats in other
// words is not.
func (p *progress) shows(e orchestrator.Event) bool {
	switch e.Kind {
	case orchestrator.EventJobQueued, orchestrator.EventJobPhase, orchestrator.EventStepReleased:
		return false
	case orchestrator.EventJobStarted, orchestrator.EventJobFinished:
		return e.Run == "" // a step's job says nothing that its step does not
	default:
		return true
	}
}

func mark(e orchestrator.Event) string {
	var b strings.Builder
	if e.Warning {
		b.WriteString("warning: ")
	}
	if e.Host != "" && !strings.Contains(e.Message, e.Host) {
		b.WriteString(e.Host + ": ")
	}
	return b.String()
}
