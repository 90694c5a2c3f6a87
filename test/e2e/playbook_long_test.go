//go:build long

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/test/nethost"
)

// TestLongGatePlaybookRunAdmits: hosts that an apply added are admitted within the job,
// with the settings of the newest succeeded chain.
func TestLongGatePlaybookRunAdmits(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1, web2 := s.host("web1"), s.host("web2")
	web3 := s.hostWith(nethost.HostOptions{Name: "web3", LateSSHD: true})
	s.start()
	s.workspace("edge", map[string]vars{"web1": hostVars(web1)})
	g := s.hostGate(web2, "onboard")
	onboarding := s.playbook("onboard", rawPlay("web1", "true")+rawPlay("web2:web3", g.line()))
	play := s.playbook("site", rawPlay("tf:edge", "echo $(hostname) >>/tmp/played"))
	s.converge("edge", play, "--onboard-playbook", onboarding, "--ssh-wait", "3s")
	added := map[string]vars{"web1": hostVars(web1), "web2": hostVars(web2)}
	s.writeHosts("edge", added)
	s.ok("workspace", "apply", "edge", "--wait")
	shown := s.ok("inventory", "show", "edge").stderr
	s.holds(strings.Contains(shown, "3s") && strings.Contains(shown, onboarding) && strings.Contains(shown, s.lab.Key().Path),
		"inventory show says how hosts are admitted", shown)

	r, j := s.playbookRun(play, "--no-admit")
	s.holds(r.code == 4 && strings.Contains(j.Failure.Message, "web2") && !strings.Contains(j.Failure.Message, "web1"), "--no-admit fails naming the host", r)
	r, j = s.playbookRun(play, "--", "--check")
	s.holds(r.code == 4 && strings.Contains(j.Failure.Message, "--check"), "--check admits nobody", r)
	s.holds(len(web2.Logins()) == 0 && len(s.pins()) == 1, "web2 was not touched", web2.Logins(), s.pins())
	before := s.fileOn(web1, "/tmp/played")
	r, _ = s.playbookRun(play, "--no-admit", "--", "--limit", "web1")
	s.holds(r.code == 0 && s.fileOn(web1, "/tmp/played") == before+"web1\n", "a --limit without it needs no admission", r)

	id := strings.TrimSpace(s.ok("playbook", "run", play, "--inventory", "tf:edge").stdout)
	g.await(1)
	s.crash()
	s.awaitEvent("the adoption", func(e orchestrator.Event) bool { return e.Kind == orchestrator.EventJobAdopted && string(e.Job) == id })
	g.open()
	s.awaitEvent("the end", func(e orchestrator.Event) bool { return e.Kind == orchestrator.EventJobFinished && string(e.Job) == id })
	j = jsonOf[orchestrator.Job](s, "jobs", "show", id)
	s.holds(j.State == orchestrator.JobSucceeded, "a crash of the daemon while it onboards is survived", j.Failure)
	g.ran(1)
	s.holds(s.fileOn(web2, "/tmp/played") == "web2\n" && s.fileOn(web1, "/tmp/played") == before+"web1\nweb1\n", "both have converged")
	s.holdsInventoryLogin(web2, "edge", "web2")

	added["web3"] = hostVars(web3)
	s.writeHosts("edge", added)
	s.ok("workspace", "apply", "edge", "--wait")
	r, j = s.playbookRun(play)
	s.holds(r.code == 1 && strings.Contains(j.Failure.Message, "web3") && strings.Contains(j.Failure.Message, "within 3s"), "a silent host fails the job by name", r)
	s.holds(s.fileOn(web2, "/tmp/played") == "web2\n", "and nothing is played")
	r, j = s.playbookRun(play, "--keep-going")
	s.holds(r.code == 1 && strings.Contains(j.Failure.Message, "the play did its work on the others; not admitted: ") && strings.Contains(j.Failure.Message, "web3"), "--keep-going names it", r)
	s.holds(s.fileOn(web2, "/tmp/played") == "web2\nweb2\n", "and the others converge")
	states := map[string]orchestrator.HostState{}
	for _, h := range j.Report.Hosts {
		states[h.Name] = h.State
	}
	s.holds(states["web1"] == orchestrator.HostChanged && states["web2"] == orchestrator.HostChanged && states["web3"] == orchestrator.HostWaiting, "each host has its line", j.Report)

	if err := web1.RotateHostKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, logins := s.fileOn(web1, "/tmp/played"), len(web1.Logins())
	r, j = s.playbookRun(play, "--keep-going")
	s.holds(r.code == 1 && strings.Contains(j.Failure.Message, "web1") && strings.Contains(j.Failure.Message, "key") && strings.Contains(j.Failure.Message, "web3"), "a host whose key changed is named", r)
	s.holds(s.fileOn(web1, "/tmp/played") == before && len(web1.Logins()) == logins, "nothing is pushed to it")
	s.holds(s.fileOn(web2, "/tmp/played") == "web2\nweb2\nweb2\n", "the others converge")
}

// TestLongPlaybookVendor: a play uses a vendored collection and a vendored role in a
// network namespace of the daemon's that has no way out.
func TestLongPlaybookVendor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.workspace("edge", thisMachine())
	s.ok("workspace", "apply", "edge", "--wait")
	log := filepath.Join(s.dir, "played")
	task := func(word string) string { return "- ansible.builtin.raw: " + quoteYAML("echo "+word+" >>"+log) + "\n" }
	s.writeFile("src/tools/galaxy.yml", "namespace: acme\nname: tools\nversion: 1.2.3\nreadme: README.md\nauthors: [acme]\n")
	s.writeFile("src/tools/README.md", "tools\n")
	s.writeFile("src/tools/roles/hi/tasks/main.yml", task("collection"))
	s.writeFile("src/greet/tasks/main.yml", task("role"))
	s.writeFile("src/greet/meta/main.yml", "galaxy_info:\n  author: acme\n  description: greets\n  license: MIT\n  min_ansible_version: \"2.14\"\ndependencies: []\n")
	s.runIn(filepath.Join(s.dir, "src/tools"), "ansible-galaxy", "collection", "build", "--output-path", filepath.Dir(s.writeFile("reqs/.keep", "")))
	s.runIn(filepath.Join(s.dir, "src"), "tar", "-czf", filepath.Join(s.dir, "greet.tar.gz"), "greet")
	s.writeFile("part/tasks/main.yml", task("git"))
	s.writeFile("part/meta/main.yml", s.read(filepath.Join(s.dir, "src/greet/meta/main.yml")))
	git := filepath.Join(s.dir, "part")
	s.runIn(git, "git", "init", "-q", ".")
	s.runIn(git, "git", "add", ".")
	s.runIn(git, "git", "-c", "user.name=acme", "-c", "user.email=acme@example.org", "commit", "-qm", "part")
	requirements := s.writeFile("reqs/requirements.yml", "collections:\n  - name: ./acme-tools-1.2.3.tar.gz\n    type: file\nroles:\n  - name: greet\n    src: file://"+s.dir+"/greet.tar.gz\n  - name: part\n    scm: git\n    src: file://"+git+"\n")

	play := s.playbook("uses", "- hosts: tf:edge\n  gather_facts: false\n  roles:\n    - greet\n    - part\n    - acme.tools.hi\n")
	r, j := s.playbookRun(play)
	s.holds(r.code == 1 && strings.Contains(j.Failure.Message, "greet"), "before, the play does not find them", r)
	v := jsonOf[rpc.Vendored](s, "playbook", "vendor", "--requirements", requirements)
	s.holds(slices.Equal(v.Collections, []string{"acme.tools 1.2.3"}) && slices.Equal(v.Roles, []string{"greet", "part"}) && strings.HasPrefix(v.Dir, s.data()),
		"all are vendored into the data directory", v)
	for _, dir := range []string{"src", "reqs", "part"} { // nothing but the data directory is left
		if err := os.RemoveAll(filepath.Join(s.dir, dir)); err != nil {
			t.Fatal(err)
		}
	}
	s.stop()
	s.offline()
	r, j = s.playbookRun(play)
	s.holds(r.code == 0 && s.read(log) == "role\ngit\ncollection\n", "without a network a play uses them", r, j.Failure)

	broken := s.writeFile("reqs/requirements.yml", "roles:\n  - name: gone\n    src: file:///nonexistent/gone.tar.gz\n")
	s.fails(1, []string{"ansible-galaxy could not install the roles", "gone"}, "playbook", "vendor", "--requirements", broken)
	r, _ = s.playbookRun(play)
	s.holds(r.code == 0, "what was vendored before is still there", r)
	s.fails(2, []string{"--requirements is missing"}, "playbook", "vendor")
	s.holds(slices.ContainsFunc(s.events(), func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventPlaybooksVendored && strings.Contains(e.Message, "acme.tools 1.2.3")
	}), "an event says what was vendored")
}

// TestLongPlaybookVendorLeavesNothing: an ansible-galaxy that takes long ends with the
// command that wanted it, and with the daemon.
func TestLongPlaybookVendorLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	pipe := filepath.Join(s.dir, "pipe.tar.gz") // whoever opens it waits
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	requirements := s.writeFile("reqs/requirements.yml", "roles:\n  - name: slow\n    src: file://"+pipe+"\n")
	galaxy := func() bool {
		return slices.ContainsFunc(s.jobProcesses(), func(p process) bool { return strings.Contains(p.line, "ansible-galaxy") })
	}
	for _, end := range []func(stop func()){
		func(stop func()) { stop() },
		func(func()) { s.daemon.kill() },
	} {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan result, 1)
		go func() { done <- s.cliContext(ctx, "playbook", "vendor", "--requirements", requirements) }()
		s.await("ansible-galaxy", galaxy)
		end(stop)
		s.await("the end of ansible-galaxy", func() bool { return !galaxy() })
		stop()
		<-done
	}
	s.start()
	left, err := os.ReadDir(filepath.Join(s.data(), "vendor"))
	s.holds(err == nil && len(left) == 0, "nothing of it is left in the data directory", left, err)
}

// TestLongPlaybookRuleAndTurn: a rule of exocomp.hcl is part of the job; plays of one
// inventory never overlap; a crash of the machine leaves one to be redriven.
func TestLongPlaybookRuleAndTurn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g := s.gate("play")
	play := s.playbook("site", rawPlay("tf:edge", g.line()))
	s.writeFile("exocomp.hcl", s.read(s.config)+"playbook \""+play+"\" {\n  egress = [8443]\n}\n")
	s.start()
	s.workspace("edge", thisMachine())
	s.ok("workspace", "apply", "edge", "--wait")
	first := strings.TrimSpace(s.ok("playbook", "run", play, "--inventory", "tf:edge", "--egress", "5432", "--", "-v").stdout)
	g.await(1)
	shown := s.ok("jobs", "show", first).stdout
	s.holds(strings.Contains(shown, "--egress 5432 --egress 8443 -- --verbose"), "the job shows its flags and what the rule grants", shown)
	second := strings.TrimSpace(s.ok("playbook", "run", play, "--inventory", "edge").stdout)
	s.holds(jsonOf[orchestrator.Job](s, "jobs", "show", second).State == orchestrator.JobQueued, "a second play of the inventory waits")
	s.crash()
	s.awaitEvent("the adoption", func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventJobAdopted && string(e.Job) == first
	})
	s.holds(jsonOf[orchestrator.Job](s, "jobs", "show", first).State == orchestrator.JobRunning, "a crash of the daemon cuts no play short")

	// The machine dies: daemon, supervisor and tool.
	p := s.supervised()
	s.daemon.kill()
	p.Supervisor.kill(t)
	p.Tool.kill(t)
	s.start()
	s.awaitEvent("the interruption", func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventJobInterrupted && string(e.Job) == first
	})
	g.await(2) // the second's turn
	redriven := strings.TrimSpace(s.ok("jobs", "redrive", first).stdout)
	again := strings.TrimSpace(s.ok("jobs", "redrive", first).stdout)
	s.holds(redriven == again && redriven != first, "redrive makes one new job", redriven, again)
	g.open()
	s.awaitEvent("the end of the redriven job", func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventJobFinished && string(e.Job) == redriven
	})
	j := jsonOf[orchestrator.Job](s, "jobs", "show", redriven)
	s.holds(j.State == orchestrator.JobSucceeded && string(j.Redrives) == first && slices.Equal(j.Spec.Egress, []int{5432, 8443}), "and it does the work", j)
	s.holds(strings.Contains(s.ok("jobs", "logs", redriven).stdout, "Line 1"), "its log is there")
}
