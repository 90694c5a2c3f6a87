package onboard

import (
	"context"
	"fmt"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible/supervised"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/seeds"
)

// verify logs in to every host as later plays will, and admits those where that
// worked: the ledger's word rests on a login, not on a play's exit code. Hosts
// of the seeded play are reached as the automation user with the fleet key
// alone; a replaced play, or `exocomp_login: inventory`, keeps the inventory's
// user.
func (h *Handler) verify(ctx context.Context, a *jobs.Attempt, w work, out orchestrator.Outcome) (orchestrator.Outcome, error) {
	automation := map[string]bool{}
	var byAutomation, byInventory []inventory.Host
	for _, x := range w.hosts {
		if w.playbook != nil || x.Login == orchestrator.LoginInventory {
			byInventory = append(byInventory, x)
		} else {
			byAutomation = append(byAutomation, x)
			automation[x.Name] = true
		}
	}
	inv, err := h.Runner.AsAutomation(w.inv, h.AutomationUser, automation)
	if err != nil {
		return orchestrator.Fail(err, out.Report), nil
	}
	checks := []struct {
		login orchestrator.Login
		hosts []inventory.Host
		run   supervised.Run
	}{
		{orchestrator.LoginAutomation, byAutomation, supervised.Run{
			Phase: phaseVerify, Playbook: ansible.Playbook{Seed: seeds.Verify}, Inventory: inv,
		}},
		{orchestrator.LoginInventory, byInventory, supervised.Run{
			Phase: phaseVerifyLogin, Playbook: ansible.Playbook{Seed: seeds.VerifyLogin}, Inventory: w.inv, Identities: w.identities, Again: w.again(a.Job),
		}},
	}
	for _, c := range checks {
		if len(c.hosts) == 0 {
			continue
		}
		c.run.Only = names(c.hosts)
		res, err := h.Runner.Execute(ctx, a, c.run)
		if err != nil {
			return orchestrator.Outcome{}, err
		}
		out.Admit = append(out.Admit, admitted(a, c.hosts, res.Report, c.login)...)
		if res.Err != nil {
			out.Failure, out.Report = orchestrator.FailureOf(res.Err), res.Report
			if out.Failure.Code != orchestrator.CodeCancelled {
				out.Failure.Message = "onboarded, but the login that should work now does not: " + out.Failure.Message
			}
			return out, nil
		}
	}
	out.Report.Summary = fmt.Sprintf("%d host(s) pinned, onboarded and admitted", len(out.Admit))
	return out, nil
}

// admitted returns the admissions of the hosts on which the login worked.
func admitted(a *jobs.Attempt, hosts []inventory.Host, report *orchestrator.Report, login orchestrator.Login) []orchestrator.Admission {
	if report == nil {
		return nil
	}
	works := map[string]bool{}
	for _, r := range report.Hosts {
		works[r.Name] = r.State == orchestrator.HostOK || r.State == orchestrator.HostChanged
	}
	var out []orchestrator.Admission
	for _, x := range hosts {
		if works[x.Name] {
			out = append(out, orchestrator.Admission{
				Workspace: a.Job.Workspace, Host: x.Name, Login: login,
				Address: orchestrator.DialAddress(x.Address, x.Port), Job: a.Job.ID,
			})
		}
	}
	return out
}
