package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/test/nethost"
	"github.com/exocomp/exocomp/test/nethost/nethosttest"
)

// vars are variables of an Ansible host or group, or outputs by name.
type vars = map[string]any

// host makes a host in the site's lab that ends with the test.
func (s *site) host(name string) *nethost.Host {
	s.t.Helper()
	return s.hostWith(nethost.HostOptions{Name: name})
}

func (s *site) hostWith(o nethost.HostOptions) *nethost.Host {
	s.t.Helper()
	return nethosttest.Host(s.t, s.lab, o)
}

// hostVars are the variables with which Ansible reaches h; more ones are added
// or replace them.
func hostVars(h *nethost.Host, more ...vars) vars {
	v := vars{
		"ansible_host":               h.Addr(),
		"ansible_user":               h.User(),
		"ansible_python_interpreter": "/usr/bin/python3",
	}
	if h.Port() != 22 {
		v["ansible_port"] = h.Port()
	}
	for _, m := range more {
		maps.Copy(v, m)
	}
	return v
}

// workspace writes a configuration whose `hosts` output is hosts, and registers
// it. It returns the configuration's directory.
func (s *site) workspace(name string, hosts map[string]vars) string {
	s.t.Helper()
	return s.workspaceOutputs(name, vars{"hosts": hosts})
}

// workspaceOutputs is workspace with any outputs.
func (s *site) workspaceOutputs(name string, outputs vars) string {
	s.t.Helper()
	dir := s.writeOutputs(name, outputs)
	s.ok("workspace", "add", name, dir)
	return dir
}

// writeHosts changes the `hosts` output of a workspace's configuration.
func (s *site) writeHosts(name string, hosts map[string]vars) string {
	s.t.Helper()
	return s.writeOutputs(name, vars{"hosts": hosts})
}

// writeOutputs writes a workspace's configuration: each output is what a
// resource of its name, terraform_data.<name>, has made of its input, so that
// it is known only after an apply. It returns the configuration's directory.
func (s *site) writeOutputs(name string, outputs vars) string {
	s.t.Helper()
	resources, results := vars{}, vars{}
	for k, v := range outputs {
		input, err := json.Marshal(v)
		if err != nil {
			s.t.Fatal(err)
		}
		// JSON strings are templates to tofu
		input = []byte(strings.NewReplacer("${", "$${", "%{", "%%{").Replace(string(input)))
		resources[k] = vars{"input": json.RawMessage(input)}
		results[k] = vars{"value": "${terraform_data." + k + ".output}"}
	}
	config := vars{}
	if len(outputs) > 0 {
		config = vars{"resource": vars{"terraform_data": resources}, "output": results}
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	return filepath.Dir(s.writeFile(filepath.Join("infra", name, "main.tf.json"), string(text)))
}

// playbook writes a playbook into a directory of its own, which is therefore
// its snapshot's root, and returns its path. Writing it again replaces it.
func (s *site) playbook(name, text string) string {
	s.t.Helper()
	return s.writeFile(filepath.Join("plays", name, "site.yml"), text)
}

// rawPlay is a play without fact gathering whose tasks are shell lines; each
// runs once and counts as changed. Python is not needed on the hosts.
func rawPlay(hosts string, lines ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- hosts: %s\n  gather_facts: false\n  tasks:\n", hosts)
	for i, l := range lines {
		fmt.Fprintf(&b, "    - name: Line %d\n      ansible.builtin.raw: %s\n", i+1, quoteYAML(l))
	}
	return b.String()
}

// copyPlay is a converging play: it writes content to a file of the hosts.
func copyPlay(hosts, content, dest string) string {
	return fmt.Sprintf(`- hosts: %s
  gather_facts: false
  tasks:
    - name: Write the file
      ansible.builtin.copy:
        content: %s
        dest: %s
        mode: "0644"
`, hosts, quoteYAML(content), dest)
}

// quoteYAML quotes a string for YAML: its double-quoted form is JSON's.
func quoteYAML(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// provision runs a chain with the lab's key to its end and returns how the
// command ended and what the ledger says of the run.
func (s *site) provision(workspace, playbook string, flags ...string) (result, orchestrator.Run) {
	s.t.Helper()
	args := append([]string{"provision", "run", workspace, playbook, "--wait"}, flags...)
	if s.lab != nil {
		args = append(args, "--ssh-identity", s.lab.Key().Path)
	}
	r := s.cli(args...)
	return r, s.run(workspace)
}

// converge is provision of a chain that must succeed.
func (s *site) converge(workspace, playbook string, flags ...string) orchestrator.Run {
	s.t.Helper()
	r, run := s.provision(workspace, playbook, flags...)
	if r.code != 0 || run.State != orchestrator.RunSucceeded {
		s.t.Fatalf("run %s is %s: %s", run.ID, run.State, r)
	}
	return run
}

// submit submits a chain with the lab's key and does not wait for its end.
func (s *site) submit(workspace, playbook string, flags ...string) orchestrator.RunID {
	s.t.Helper()
	args := append([]string{"provision", "run", workspace, playbook}, flags...)
	if s.lab != nil {
		args = append(args, "--ssh-identity", s.lab.Key().Path)
	}
	return orchestrator.RunID(strings.TrimSpace(s.ok(args...).stdout))
}

// run returns a run by its id, or the newest one of a workspace.
func (s *site) run(ref string) orchestrator.Run {
	s.t.Helper()
	return jsonOf[orchestrator.Run](s, "provision", "status", ref)
}

// awaitRun waits until a run is in its final state and returns it. It may be
// waited for across crashes of the daemon.
func (s *site) awaitRun(ref string) orchestrator.Run {
	s.t.Helper()
	id := string(s.run(ref).ID)
	s.awaitEvent("the end of run "+id, func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventRunFinished && s.run(id).State.Final()
	}, "--run", id)
	return s.run(id)
}

// events returns the events that `exocomp events` prints with args.
func (s *site) events(args ...string) []orchestrator.Event {
	s.t.Helper()
	r := s.ok(append([]string{"events", "--json"}, args...)...)
	var events []orchestrator.Event
	for line := range strings.Lines(r.stdout) {
		var e orchestrator.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("%v in %q", err, line)
		}
		events = append(events, e)
	}
	return events
}

// awaitEvent waits for an event that fits, old or new, and returns it.
func (s *site) awaitEvent(what string, fits func(orchestrator.Event) bool, args ...string) orchestrator.Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, append([]string{"events", "--follow", "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "EXOCOMP_SOCKET="+s.socket())
	stderr := newSyncBuffer()
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	for d := json.NewDecoder(out); ; {
		var e orchestrator.Event
		if err := d.Decode(&e); err != nil {
			s.t.Fatalf("awaiting %s: %v: %s", what, err, stderr)
		}
		if fits(e) {
			return e
		}
	}
}

// states returns the states of a run's steps, in order.
func states(run orchestrator.Run) []orchestrator.StepState {
	out := make([]orchestrator.StepState, 0, len(run.Steps))
	for _, s := range run.Steps {
		out = append(out, s.State)
	}
	return out
}

// onHost runs a command on a host, past its sshd, and returns what it prints.
func (s *site) onHost(h *nethost.Host, argv ...string) string {
	s.t.Helper()
	out, err := h.Exec(s.t.Context(), argv...)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(out)
}

// fileOn returns a host's file, or an empty text where it does not exist.
func (s *site) fileOn(h *nethost.Host, path string) string {
	s.t.Helper()
	if there, err := h.Exists(path); err != nil {
		s.t.Fatal(err)
	} else if !there {
		return ""
	}
	data, err := h.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// read returns a file of this machine.
func (s *site) read(path string) string {
	s.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// pins returns the pins that are matched, as `host known-hosts` knows them.
func (s *site) pins(args ...string) []orchestrator.Pin {
	s.t.Helper()
	return jsonOf[[]orchestrator.Pin](s, append([]string{"host", "known-hosts"}, args...)...)
}
