//go:build long

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// TestLongGateHostOnboard: onboarding outside any chain, by exocomp and by hand.
func TestLongGateHostOnboard(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1, web2 := s.host("web1"), s.host("web2")
	s.start()
	s.workspace("edge", map[string]vars{
		"web1": hostVars(web1), "web2": hostVars(web2, vars{"exocomp_login": "inventory"}),
	})
	s.ok("workspace", "apply", "edge", "--wait")
	s.holds(len(web1.Logins())+len(web2.Logins()) == 0 && len(s.pins()) == 0, "an apply alone touches no host", s.pins())

	printed := s.ok("host", "onboard", "edge/web1", "--print")
	var given map[string]string
	err := json.Unmarshal([]byte(printed.stdout), &given)
	fleet := strings.TrimSpace(s.ok("host", "fleet-key").stdout)
	s.holds(err == nil && given["exocomp_fleet_pubkey"] == fleet && given["exocomp_user"] == "exocomp",
		"--print prints the variables as JSON, the key whole", printed, err)
	s.holds(len(web1.Logins()) == 0 && len(s.pins()) == 0, "and onboards nothing", web1.Logins())
	cmd := exec.Command("sh", "-c", strings.TrimSpace(printed.stderr))
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "ANSIBLE_HOST_KEY_CHECKING=False", "ANSIBLE_LOCAL_TEMP="+s.dir+"/ansible-tmp",
		"ANSIBLE_SSH_ARGS=-F none -o ControlMaster=no -o UserKnownHostsFile=/dev/null", "ANSIBLE_PRIVATE_KEY_FILE="+s.lab.Key().Path)
	out, err := cmd.CombinedOutput()
	s.holds(err == nil && strings.Contains(s.fileOn(web1, "/home/exocomp/.ssh/authorized_keys"), fleet),
		"the printed command onboards the host when it is run by hand", string(out), err)

	s.ok("host", "onboard", "web1", "edge/web2", "--wait", "--ssh-identity", s.lab.Key().Path)
	s.holdsOnboarded(web1)
	s.holds(len(s.pins()) == 2, "both hosts are pinned", s.pins())
	s.holdsInventoryLogin(web2, "edge", "web2")
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge")
	s.holds(view.Hosts[0].Login == orchestrator.LoginAutomation, "web1 is admitted with the automation user's login", view.Hosts)
	jobs := jsonOf[[]orchestrator.Job](s, "jobs", "list", "--workspace", "edge")
	s.holds(jobs[0].Kind == orchestrator.JobHostOnboard && jobs[0].State == orchestrator.JobSucceeded && jobs[0].Run == "",
		"it is a job of its own", jobs)

	s.fails(2, []string{"nobody", "exocomp inventory show"}, "host", "onboard", "edge/nobody")
}

// TestLongGateOnboardPlaybook: an onboarding playbook of one's own gets the whole
// fleet key, and its hosts keep the inventory's login.
func TestLongGateOnboardPlaybook(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.host("web1")
	s.start()
	s.workspace("edge", map[string]vars{"web1": hostVars(web1)})
	own := s.playbook("own", `- hosts: tf:edge
  gather_facts: false
  tasks:
    - name: Keep what was given
      ansible.builtin.copy:
        content: "{{ exocomp_user }}\n{{ exocomp_fleet_pubkey }}\n"
        dest: /root/given
        mode: "0600"
`)
	play := s.playbook("site", rawPlay("tf:edge", "id -un >>/root/played"))
	run := s.converge("edge", play, "--onboard-playbook", own)
	fleet := s.ok("host", "fleet-key").stdout
	s.holds(s.fileOn(web1, "/root/given") == "exocomp\n"+fleet, "--onboard-playbook gets exocomp_user and exocomp_fleet_pubkey whole",
		s.fileOn(web1, "/root/given"), fleet)
	s.holds(run.Spec.OnboardPlaybook != nil && run.Spec.OnboardPlaybook.Path == own, "the run records the playbook", run.Spec)
	s.holdsInventoryLogin(web1, "edge", "web1")
	s.holds(s.fileOn(web1, "/root/played") == "root\n", "the play logs in as the inventory says", s.fileOn(web1, "/root/played"))
}
