//go:build long

package e2e

import "testing"

// Around the job of a fire the daemon dies, too.
func TestLongAFiresJobSurvivesTheDaemon(t *testing.T) {
	t.Parallel()
	s := localSite(t)
	s.survivesFires("after-intent:play", "after-fork:play", "after-result:play", "after-release:playbook-run")
}
