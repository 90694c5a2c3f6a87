package provider

import (
	"fmt"
	"testing"
	"time"
)

// planLimit is how long a plan of a thousand hosts may take.
const planLimit = 2 * time.Second

// planGrowth is by how much a host of a thousand may cost more than one of 250:
// in a plan that grows with the number of hosts it costs less, since the start
// of tofu is shared by more; in a quadratic one up to four times as much.
const planGrowth = 1.25

// BenchmarkPlan plans one resource with many hosts, as a person does, with tofu
// and the provider as processes: over a state that has them all, without and
// with a change.
//
// It fails where the fastest plan of a thousand hosts is over its limit. Other load
// on the machine counts, so leave it alone meanwhile.
func BenchmarkPlan(b *testing.B) {
	cost := map[string]map[int]time.Duration{"unchanged": {}, "changed": {}}
	for _, hosts := range []int{250, 500, 1000} {
		s := newSite(b, lines(
			`variable "colour" { default = "red" }`,
			`resource "exocomp_provision" "this" {`,
			`  workspace = "edge"`,
			`  playbook  = "play/site.yml"`,
			`  vars      = { colour = var.colour }`,
			fmt.Sprintf(`  inventory = { for i in range(%d) : format("web%%04d", i) => {`, hosts),
			`    ansible_host = cidrhost("198.18.0.0/16", i), ansible_user = "root", rack = i % 40`,
			`  } }`,
			`}`))
		s.apply()
		if n := len(s.daemon.runs[0].Steps[0].Report.Hosts); n != hosts {
			b.Fatalf("the run has %d hosts", n)
		}
		for name, colour := range map[string]string{"unchanged": "red", "changed": "blue"} {
			b.Run(fmt.Sprintf("%s/hosts=%d", name, hosts), func(b *testing.B) {
				cost[name][hosts] = benchmarkPlan(b, s, colour, hosts)
			})
		}
	}
	for name, c := range cost {
		if c[250] == 0 || c[1000] == 0 {
			continue // not asked for
		}
		if growth := float64(c[1000]) / float64(4*c[250]); growth > planGrowth {
			b.Errorf("%s: a host costs %.2f times as much among 1,000 as among 250", name, growth)
		}
	}
}

// benchmarkPlan returns the processor time of the cheapest plan.
func benchmarkPlan(b *testing.B, s *site, colour string, hosts int) time.Duration {
	fastest, cheapest := time.Hour, time.Hour
	for b.Loop() {
		start := time.Now()
		cmd, out := s.command("plan", "-detailed-exitcode", "-no-color", "-var=colour="+colour)
		code := s.exit(cmd.Run())
		if want := map[string]int{"red": 0, "blue": 2}[colour]; code != want {
			b.Fatalf("plan: exit code %d, want %d\n%s", code, want, out)
		}
		fastest = min(fastest, time.Since(start))
		cheapest = min(cheapest, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) // the provider's too
	}
	b.ReportMetric(fastest.Seconds(), "fastest-s")
	b.ReportMetric(cheapest.Seconds(), "cheapest-cpu-s")
	if hosts == 1000 && fastest > planLimit {
		b.Errorf("the fastest plan took %s, the cheapest %s of processor time; the limit is %s", fastest, cheapest, planLimit)
	}
	return cheapest
}
