package jobs

import (
	"time"

	"github.com/fsnotify/fsnotify"
)

// watchFallback is how often a watched directory is looked at without being
// told: inotify has limits that another program may have used up, and it does
// not say when a lock is released.
const watchFallback = 250 * time.Millisecond

// watcher tells that something in a directory changed. It may tell too often
// and, between two ticks, too late; it never says what.
type watcher struct {
	changes chan struct{} // holds at most one
	timer   *time.Timer
	notify  *fsnotify.Watcher // nil where inotify is not to be had
	done    chan struct{}
}

// watch begins watching dir. The caller closes the watcher.
func watch(dir string) *watcher {
	w := &watcher{changes: make(chan struct{}, 1), timer: time.NewTimer(watchFallback), done: make(chan struct{})}
	notify, err := fsnotify.NewWatcher()
	if err == nil && notify.Add(dir) != nil {
		_ = notify.Close()
		notify = nil
	}
	if err != nil || notify == nil {
		close(w.done)
		return w
	}
	w.notify = notify
	go w.forward()
	return w
}

func (w *watcher) forward() {
	defer close(w.done)
	for {
		select {
		case _, ok := <-w.notify.Events:
			if !ok {
				return
			}
		case _, ok := <-w.notify.Errors: // an overflow, say: something happened
			if !ok {
				return
			}
		}
		w.nudge()
	}
}

// nudge makes the next look come at once.
func (w *watcher) nudge() {
	select {
	case w.changes <- struct{}{}:
	default:
	}
}

// tick returns a channel that fires after the fallback interval from now.
func (w *watcher) tick() <-chan time.Time {
	w.timer.Reset(watchFallback)
	return w.timer.C
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
	<-w.done
	w.timer.Stop()
}
