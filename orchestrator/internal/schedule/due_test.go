package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

func states(due []orchestrator.DueFire) string {
	var out []string
	for _, d := range due {
		out = append(out, d.At.UTC().Format("15:04:05")+" "+string(d.State))
	}
	return strings.Join(out, ", ")
}

func TestDue(t *testing.T) {
	for name, c := range map[string]struct{ cron, since, now, want string }{
		"nothing":                      {"0 0 3 * * *", "2026-01-01T03:00:00Z", "2026-01-02T02:59:59Z", ""},
		"at the instant":               {"0 0 3 * * *", "2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z", "03:00:00 waiting"},
		"a minute late":                {"0 0 3 * * *", "2026-01-01T03:00:00Z", "2026-01-02T03:01:00Z", "03:00:00 waiting"},
		"more than a minute late":      {"0 0 3 * * *", "2026-01-01T03:00:00Z", "2026-01-02T03:01:01Z", "03:00:00 missed"},
		"slept 3 hours":                {"0 0 * * * *", "2026-01-01T03:00:00Z", "2026-01-01T06:30:00Z", "04:00:00 missed, 05:00:00 missed, 06:00:00 missed"},
		"slept to the instant":         {"0 0 * * * *", "2026-01-01T03:00:00Z", "2026-01-01T05:00:30Z", "04:00:00 missed, 05:00:00 waiting"},
		"several young ones fire once": {"*/20 * * * * *", "2026-01-01T03:00:00Z", "2026-01-01T03:01:20Z", "03:00:20 coalesced, 03:00:40 coalesced, 03:01:00 coalesced, 03:01:20 waiting"},
		"the clock is behind":          {"0 0 * * * *", "2026-01-01T03:00:00Z", "2026-01-01T02:00:00Z", ""},
	} {
		got := parse(t, c.cron, "UTC").Due(at(t, c.since), at(t, c.now))
		if states(got) != c.want {
			t.Errorf("%s: %s, want %s", name, states(got), c.want)
		}
		for _, d := range got {
			if (d.Reason == "") != (d.State == orchestrator.FireWaiting) {
				t.Errorf("%s: %s has the reason %q", name, d.State, d.Reason)
			}
		}
	}
}

// A machine that slept for an hour has missed 3,540 seconds, one that slept for
// ten years more than anybody wants to count.
func TestManyMissedInstantsAreCounted(t *testing.T) {
	spec, since := parse(t, "* * * * * *", "UTC"), at(t, "2026-01-01T00:00:00Z")
	for slept, says := range map[time.Duration]string{
		time.Hour:                 "so were 3439 further instants until 2026-01-01 00:58:59 UTC",
		10 * 365 * 24 * time.Hour: "so were more than 9900 further instants",
	} {
		due := spec.Due(since, since.Add(slept))
		if last := due[listMissed-1]; last.State != orchestrator.FireMissed || !strings.Contains(last.Reason, says) {
			t.Errorf("after %s: %+v, want it to say %q", slept, last, says)
		}
		if n := len(due); n != listMissed+61 || due[n-1].State != orchestrator.FireWaiting || !due[n-1].At.Equal(since.Add(slept)) {
			t.Errorf("after %s: %d fires, the last %+v", slept, n, due[n-1])
		}
	}
}
