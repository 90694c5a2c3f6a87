package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) scheduleCommand() *cobra.Command {
	return group("schedule", "Recurring plays and applies",
		a.scheduleAdd(), a.scheduleList(), a.scheduleShow(), a.schedulePause(), a.scheduleResume(),
		a.scheduleRunNow(), a.scheduleRemove())
}

func (a *app) scheduleAdd() *cobra.Command {
	var s orchestrator.Schedule
	var kind, target string
	c := &cobra.Command{
		Use:   "add NAME [-- PLAYBOOK ARGS]",
		Short: "Add a schedule, or replace the settings of one",
		Long: `Start the same work again and again: a playbook against a standing inventory
(--kind play), or an apply of its workspace (--kind apply). A schedule names the
inventory, never hosts: a host that any apply adds joins at the next instant, and
is admitted first.

--cron takes six fields, seconds first: second, minute, hour, day of the month,
month, day of the week. A time of the day that the clock skips in spring comes at
the end of the gap, one that it repeats in autumn comes once; a schedule of every
hour goes by the time that passes.

The playbook stands behind --, with what is passed to ansible-playbook (--check,
--diff, --limit, --tags, --skip-tags, --start-at-task, -e, -f, -v). It lies on the
daemon's host, which reads it anew at each instant.

Nothing of one schedule, inventory or --concurrency-key overlaps: an instant that
comes too early waits, and further ones are coalesced with it. While a chain of
the workspace is active it is skipped. Adding a name again replaces its settings.`,
		Example: `  exocomp schedule add fleet-converge --cron '0 0 3 * * *' --target tf:edge -- /srv/play/converge.yml
  exocomp schedule add weekly-apply --cron '0 30 4 * * sun' --kind apply --target tf:edge --timezone Europe/Berlin`,
	}
	fl := c.Flags()
	fl.StringVar(&s.Cron, "cron", "", "six `fields`, seconds first; required")
	fl.StringVar(&kind, "kind", string(orchestrator.SchedulePlay), "what to start: `play` or apply")
	fl.StringVar(&target, "target", "", "the standing `inventory`, tf:WORKSPACE; required")
	fl.StringVar(&s.Timezone, "timezone", "", "`zone` in which the fields count, such as Europe/Berlin (default: that of the daemon's machine)")
	fl.StringVar(&s.ConcurrencyKey, "concurrency-key", "", "`key` that schedules may share, so that they never overlap; the inventory's name is one by itself")
	playFlags(fl, &s.Egress, &s.SSHIdentities, &s.NoAdmit, &s.KeepGoing)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		s.Name, s.Kind = args[0], orchestrator.ScheduleKind(kind)
		if err := completeSchedule(&s, target, args[1:]); err != nil {
			return err
		}
		return a.with(c.Context(), func(cl *rpc.Client) error {
			v, err := cl.AddSchedule(c.Context(), s)
			if err != nil {
				return err
			}
			if *asJSON {
				if err := a.printJSON(v); err != nil {
					return err
				}
			}
			a.say("schedule %s: %s", s.Name, does(v.Schedule))
			a.sayNext(v)
			return nil
		})
	}
	return c
}

// completeSchedule fills in what the flags and the words behind -- say, and
// reports what is wrong together.
func completeSchedule(s *orchestrator.Schedule, target string, words []string) error {
	var m orchestrator.Mistakes
	if s.Cron == "" {
		m.Addf("--cron is missing: name the instants, such as '0 0 3 * * *' for every day at 3")
	}
	if target == "" {
		m.Addf("--target is missing: name a standing inventory, tf:WORKSPACE")
	}
	if err := m.Err(); err != nil {
		return err
	}
	s.Workspace = target
	if w, ok := orchestrator.WorkspaceOfInventory(target); ok {
		s.Workspace = w
	}
	if len(words) > 0 {
		s.Playbook, s.Args = words[0], words[1:]
	}
	if strings.HasPrefix(s.Playbook, "-") {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "behind --, the playbook stands first: %q is none", s.Playbook)
	}
	if err := absolute(&s.Playbook); err != nil {
		return err
	}
	for i := range s.SSHIdentities {
		if err := absolute(&s.SSHIdentities[i]); err != nil {
			return err
		}
	}
	return s.Validate()
}

// does says in a few words what a schedule does.
func does(s orchestrator.Schedule) string {
	if s.Kind == orchestrator.ScheduleApply {
		return "apply workspace " + s.Workspace
	}
	return orchestrator.ShellCommand(append([]string{"play", s.Playbook}, s.Args...)...) + " against " + s.Target()
}

// sayNext names the next instants, as the clock of the schedule's zone shows them.
func (a *app) sayNext(v orchestrator.ScheduleView) {
	switch {
	case v.Schedule.Paused:
		a.say("it is paused; let it go on: exocomp schedule resume %s", v.Schedule.Name)
	case len(v.Next) == 0:
		a.say("it fires never again")
	default:
		a.say("next fires: %s", strings.Join(clocks(v), ", "))
	}
}

func clocks(v orchestrator.ScheduleView) []string {
	zone := time.Local
	if v.Schedule.Timezone != "" {
		if z, err := time.LoadLocation(v.Schedule.Timezone); err == nil {
			zone = z
		}
	}
	var out []string
	for _, at := range v.Next {
		out = append(out, at.In(zone).Format("2006-01-02 15:04:05 MST"))
	}
	return out
}

func (a *app) scheduleList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the schedules: the next fire of each, and what became of the last"}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			all, err := cl.ListSchedules(c.Context())
			if err != nil {
				return err
			}
			if *asJSON {
				return a.printJSON(list(all))
			}
			rows := make([][]string, 0, len(all))
			for _, v := range all {
				next := "paused"
				if len(v.Next) > 0 {
					next = instant(v.Next[0])
				}
				last, result := "-", "-"
				if len(v.Fires) > 0 {
					last, result = instant(v.Fires[0].At), became(v.Fires[0])
				}
				rows = append(rows, []string{v.Schedule.Name, string(v.Schedule.Kind), v.Schedule.Target(), v.Schedule.Cron, next, last, result})
			}
			return a.table([]string{"SCHEDULE", "KIND", "TARGET", "CRON", "NEXT", "LAST", "RESULT"}, rows,
				"no schedules; add one: exocomp schedule add NAME --cron '0 0 3 * * *' --target tf:WORKSPACE -- PLAYBOOK")
		})
	}
	return c
}

// became says what became of a fire, with the reason where it was not started or
// its job did not succeed.
func became(f orchestrator.Fire) string {
	switch {
	case f.JobFailure != "":
		return printable(string(f.Job) + " " + string(f.JobState) + ": " + f.JobFailure)
	case f.Job != "":
		return string(f.Job) + " " + string(f.JobState)
	case f.Reason != "":
		return printable(string(f.State) + ": " + f.Reason)
	default:
		return string(f.State)
	}
}

func (a *app) scheduleShow() *cobra.Command {
	var fires int
	c := &cobra.Command{Use: "show NAME", Short: "Show a schedule's settings, its next fires and what became of the last ones"}
	limitFlag(c, &fires, 20, "at most `n` fires; 0: all")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			v, err := cl.GetSchedule(c.Context(), args[0], fires)
			if err != nil {
				return err
			}
			if *asJSON {
				v.Fires = list(v.Fires)
				return a.printJSON(v)
			}
			return a.printSchedule(v)
		})
	}
	return c
}

func (a *app) printSchedule(v orchestrator.ScheduleView) error {
	s := v.Schedule
	rows := [][]string{
		{"kind", string(s.Kind)},
		{"target", s.Target()},
		{"cron", s.Cron},
		{"timezone", orDash(s.Timezone)},
		{"concurrency key", orDash(s.ConcurrencyKey)},
	}
	if s.Kind == orchestrator.SchedulePlay {
		rows = append(rows,
			[]string{"playbook", printable(s.Playbook)},
			[]string{"arguments", orDash(printable(orchestrator.ShellCommand(s.Args...)))},
			[]string{"egress", orDash(strings.Trim(fmt.Sprint(s.Egress), "[]"))},
			[]string{"ssh identities", orDash(printable(strings.Join(s.SSHIdentities, " ")))},
			[]string{"admission", admission(s)})
	}
	next := "paused"
	if len(v.Next) > 0 {
		next = strings.Join(clocks(v), ", ")
	}
	rows = append(rows, []string{"next", next}, []string{"added", instant(s.CreatedAt) + " by " + byWhom(s.CreatedBy)})
	if err := a.table([]string{"schedule", s.Name}, rows, ""); err != nil || len(v.Fires) == 0 {
		return err
	}
	rows = nil
	for _, f := range v.Fires {
		by := "-"
		if f.Manual {
			by = byWhom(f.By)
		}
		result := printable(f.Reason)
		if f.Job != "" {
			result = became(f)
		}
		rows = append(rows, []string{instant(f.At), string(f.State), by, orDash(result)})
	}
	_, _ = fmt.Fprintln(a.Out)
	return a.table([]string{"FIRE", "STATE", "ASKED BY", "RESULT"}, rows, "")
}

func admission(s orchestrator.Schedule) string {
	switch {
	case s.NoAdmit:
		return "none: hosts that are not admitted are refused"
	case s.KeepGoing:
		return "hosts that cannot be admitted are left out"
	default:
		return "every host, or nothing is played"
	}
}

func byWhom(p orchestrator.Peer) string {
	if p.Name != "" {
		return printable(p.Name)
	}
	return fmt.Sprintf("uid %d", p.UID)
}

func (a *app) schedulePause() *cobra.Command {
	return a.schedulePauses("pause NAME", "Let a schedule rest; its instants are passed over until it is resumed", false)
}

func (a *app) scheduleResume() *cobra.Command {
	return a.schedulePauses("resume NAME", "Let a paused schedule go on, at its next instant", true)
}

func (a *app) schedulePauses(use, short string, resume bool) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			v, err := cl.PauseSchedule(c.Context(), args[0], resume)
			if err != nil {
				return err
			}
			if *asJSON {
				if err := a.printJSON(v); err != nil {
					return err
				}
			}
			a.sayNext(v)
			return nil
		})
	}
	return c
}

func (a *app) scheduleRemove() *cobra.Command {
	c := &cobra.Command{Use: "remove NAME", Short: "Forget a schedule; a job that it has started goes on"}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			v, err := cl.GetSchedule(c.Context(), args[0], 1)
			if err != nil {
				return err
			}
			if err := cl.RemoveSchedule(c.Context(), args[0]); err != nil {
				return err
			}
			if *asJSON { // as it was
				if err := a.printJSON(v); err != nil {
					return err
				}
			}
			a.say("schedule %s is forgotten", args[0])
			if i := slices.IndexFunc(v.Fires, func(f orchestrator.Fire) bool { return f.Job != "" && !f.JobState.Final() }); i >= 0 {
				a.say("its job goes on: exocomp jobs show %s", v.Fires[i].Job)
			}
			return nil
		})
	}
	return c
}
