package provider

import (
	"testing"
	"time"
)

// planLimit is how long a plan of a thousand hosts may take.
const planLimit = 2 * time.Second

// BenchmarkPlan1000Hosts plans one resource with a thousand hosts, as tofu does
// it: over a state that has them all, without and with a change. It fails where
// even the fastest plan is too slow, which a quadratic step makes it.
func BenchmarkPlan1000Hosts(b *testing.B) {
	s := newSite(b, lines(
		`variable "count_of" { default = 1000 }`,
		`variable "colour" { default = "red" }`,
		`resource "exocomp_provision" "this" {`,
		`  workspace = "edge"`,
		`  playbook  = "play/site.yml"`,
		`  vars      = { colour = var.colour }`,
		`  inventory = { for i in range(var.count_of) : format("web%04d", i) => {`,
		`    ansible_host = cidrhost("198.18.0.0/16", i), ansible_user = "root", rack = i % 40`,
		`  } }`,
		`}`))
	s.apply()
	if n := len(s.daemon.runs[0].Steps[0].Report.Hosts); n != 1000 {
		b.Fatalf("the run has %d hosts", n)
	}
	for name, change := range map[string]bool{"unchanged": false, "changed": true} {
		b.Run(name, func(b *testing.B) {
			colour := "red"
			if change {
				colour = "blue"
			}
			fastest, work := time.Hour, time.Duration(0)
			for b.Loop() {
				start := time.Now()
				cmd, out := s.command("plan", "-detailed-exitcode", "-no-color", "-var=colour="+colour)
				code := s.exit(cmd.Run())
				if want := map[bool]int{false: 0, true: 2}[change]; code != want {
					b.Fatalf("plan: exit code %d, want %d\n%s", code, want, out)
				}
				fastest = min(fastest, time.Since(start))
				work += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // the provider's too
			}
			b.ReportMetric(fastest.Seconds(), "fastest-s")
			b.ReportMetric(work.Seconds()/float64(b.N), "cpu-s/op")
			if fastest > planLimit {
				b.Errorf("the fastest plan took %s, over %s; a plan takes %s of processor time", fastest, planLimit, work/time.Duration(b.N))
			}
		})
	}
}
