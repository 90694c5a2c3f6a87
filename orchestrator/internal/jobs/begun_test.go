package jobs

import (
	"testing"
	"time"
)

// The tasks of a short play follow each other within milliseconds, and somebody
// who watches wants to see each.
func TestABurstOfProgressIsRecordedAndAFloodIsNot(t *testing.T) {
	var b budget
	now := time.Now()
	taken := func(n int, every time.Duration) (count int) {
		for range n {
			now = now.Add(every)
			if b.take(now) {
				count++
			}
		}
		return count
	}
	if n := taken(doingBurst, time.Millisecond); n != doingBurst {
		t.Errorf("%d of a burst of %d are recorded, want all", n, doingBurst)
	}
	if n := taken(10_000, time.Millisecond); n < 40 || n > 42 {
		t.Errorf("%d of a flood of 10 s are recorded, want one in each %s", n, doingInterval)
	}
	now = now.Add(time.Hour)
	if n := taken(2*doingBurst, 0); n != doingBurst {
		t.Errorf("%d are recorded after a rest, want %d", n, doingBurst)
	}
}
