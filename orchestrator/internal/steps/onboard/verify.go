package onboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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
		if res.Err == nil {
			continue
		}
		failure := orchestrator.FailureOf(res.Err)
		if failure.Code != orchestrator.CodeCancelled {
			failure.Message = "onboarded, but the login that should work now does not: " + failure.Message
		}
		if !w.keepGoing || failure.Code == orchestrator.CodeCancelled {
			out.Failure, out.Report = failure, res.Report
			return out, nil
		}
		out.Report.Hosts = replaced(out.Report.Hosts, res.Report.Hosts)
		out.Report.LastLines = res.Report.LastLines
		if before := out.Failure; before != nil {
			failure.Message = before.Message + "; " + failure.Message
			failure.Hint = cmp.Or(before.Hint, failure.Hint)
		}
		out.Failure = failure
	}
	if !out.Succeeded() {
		return out, nil
	}
	out.Report.Summary = fmt.Sprintf("%d host(s) pinned, onboarded and admitted", len(out.Admit))
	return out, nil
}

// replaced returns the lines of hosts with the newer ones in place of theirs.
func replaced(lines, newer []orchestrator.HostReport) []orchestrator.HostReport {
	return slices.SortedFunc(slices.Values(slices.Concat(newer, slices.DeleteFunc(slices.Clone(lines), func(l orchestrator.HostReport) bool {
		return slices.ContainsFunc(newer, func(n orchestrator.HostReport) bool { return n.Name == l.Name })
	}))), func(a, b orchestrator.HostReport) int { return strings.Compare(a.Name, b.Name) })
}

// admitted returns the admissions of the hosts on which the login worked.
func admitted(a *jobs.Attempt, hosts []inventory.Host, report *orchestrator.Report, login orchestrator.Login) []orchestrator.Admission {
	if report == nil {
		return nil
	}
	works := well(report)
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
