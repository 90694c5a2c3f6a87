package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// completeWithin bounds what the daemon is asked for while somebody holds
	// the tab key; where it is away nothing is offered, and nothing said.
	completeWithin = time.Second
	// completeNewest is how many runs and jobs are offered.
	completeNewest = 30
)

// candidates asks the daemon for what may stand in a place. A tab divides each
// from its description.
type candidates func(context.Context, *rpc.Client) ([]string, error)

// complete makes every command below c complete its arguments, by their names in
// its Use line, and the values of its flags.
func (a *app) complete(c *cobra.Command) {
	takes := argumentsOf(c.Use)
	if !c.HasSubCommands() && c.ValidArgsFunction == nil {
		c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			at := len(args)
			if takes.many {
				at = min(at, len(takes.names)-1)
			}
			if at == len(takes.names) && strings.Contains(c.Use, "[-- PLAYBOOK") {
				return []string{"yml", "yaml"}, cobra.ShellCompDirectiveFilterFileExt
			}
			if at >= len(takes.names) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			switch name := takes.names[at]; name {
			case "PLAYBOOK":
				return []string{"yml", "yaml"}, cobra.ShellCompDirectiveFilterFileExt
			case "DIR":
				return nil, cobra.ShellCompDirectiveFilterDirs
			case "tf:WORKSPACE": // or a directory
				return a.offer(c, candidatesFor(c, name), args, begun), cobra.ShellCompDirectiveDefault
			default:
				return a.offer(c, candidatesFor(c, name), args, begun), cobra.ShellCompDirectiveNoFileComp
			}
		}
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { a.completeFlag(c, f) })
	for _, sub := range c.Commands() {
		a.complete(sub)
	}
}

// completeFlag makes a flag complete its value. Texts are files unless the name
// says what else; the rest are numbers and durations.
func (a *app) completeFlag(c *cobra.Command, f *pflag.Flag) {
	var offer cobra.CompletionFunc
	switch {
	case f.Name == "workspace":
		offer = a.flagOf(workspaceNames)
	case f.Name == "kind":
		offer = fixed(orchestrator.ScheduleKinds)
	case f.Name == "cron", f.Name == "timezone", f.Name == "concurrency-key":
		offer = cobra.NoFileCompletions
	case f.Name == "inventory", f.Name == "target":
		offer = a.flagOf(inventoryNames)
	case f.Name == "run":
		offer = a.flagOf(runRefs)
	case f.Name == "from":
		offer = fixed(orchestrator.StepKinds)
	case f.Name == "state":
		offer = fixed(orchestrator.JobStates)
	case f.Name == "approval":
		offer = fixed([]orchestrator.ApprovalPolicy{orchestrator.ApprovalNever, orchestrator.ApprovalDestructive, orchestrator.ApprovalAlways})
	case strings.HasSuffix(f.Name, "playbook"):
		offer = cobra.FixedCompletions([]string{"yml", "yaml"}, cobra.ShellCompDirectiveFilterFileExt)
	case f.Name == "tofu-workspace", !strings.HasPrefix(f.Value.Type(), "string"):
		offer = cobra.NoFileCompletions
	default:
		return
	}
	_ = c.RegisterFlagCompletionFunc(f.Name, offer) // an error says that cobra's own does it
}

func fixed[S ~string](values []S) cobra.CompletionFunc {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

func (a *app) flagOf(of candidates) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return a.offer(c, of, nil, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// offer returns the candidates that begin as typed, without those that stand in
// the line already.
func (a *app) offer(c *cobra.Command, of candidates, given []string, begun string) []string {
	if of == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
	defer cancel()
	var all []string
	err := a.with(ctx, func(cl *rpc.Client) (err error) {
		all, err = of(ctx, cl)
		return err
	})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(s string) bool {
		word, _, _ := strings.Cut(s, "\t")
		return !strings.HasPrefix(word, begun) || slices.Contains(given, word)
	})
}

// candidatesFor returns what an argument of a command may be, or nil.
func candidatesFor(c *cobra.Command, name string) candidates {
	switch name {
	case "NAME":
		if c.HasParent() && c.Parent().Name() == "schedule" {
			return scheduleNames
		}
		return workspaceNames
	case "WORKSPACE", "WORKSPACE|tf:WORKSPACE":
		return workspaceNames
	case "tf:WORKSPACE":
		return inventoryNames
	case "RUN|WORKSPACE":
		return runRefs
	case "JOB":
		return jobIDs(c.Name())
	case "HOST":
		if c.Name() == "forget" {
			return pinnedHosts
		}
		return inventoryHosts
	case "ADDRESS":
		return pinnedAddresses
	default:
		return nil
	}
}

func workspaceNames(ctx context.Context, cl *rpc.Client) ([]string, error) {
	all, err := cl.ListWorkspaces(ctx)
	names := make([]string, 0, len(all))
	for _, w := range all {
		names = append(names, w.Name+"\t"+printable(w.Dir))
	}
	return names, err
}

func scheduleNames(ctx context.Context, cl *rpc.Client) ([]string, error) {
	all, err := cl.ListSchedules(ctx)
	names := make([]string, 0, len(all))
	for _, v := range all {
		names = append(names, v.Schedule.Name+"\t"+printable(does(v.Schedule)))
	}
	return names, err
}

// runRefs are the workspaces that have runs, and the newest runs.
func runRefs(ctx context.Context, cl *rpc.Client) ([]string, error) {
	runs, err := cl.ListRuns(ctx, orchestrator.RunFilter{Limit: completeNewest})
	var workspaces, ids []string
	for _, r := range runs {
		if of := r.Workspace + "\tits newest run"; !slices.Contains(workspaces, of) {
			workspaces = append(workspaces, of)
		}
		ids = append(ids, string(r.ID)+"\t"+r.Workspace+", "+string(r.State)+", "+instant(r.CreatedAt))
	}
	return append(workspaces, ids...), err
}

// jobIDs are the newest jobs that a command can do something with.
func jobIDs(command string) candidates {
	return func(ctx context.Context, cl *rpc.Client) ([]string, error) {
		jobs, err := cl.ListJobs(ctx, orchestrator.JobFilter{Limit: completeNewest})
		var ids []string
		for _, j := range jobs {
			if command == "cancel" && j.State.Final() || command == "redrive" && j.State != orchestrator.JobInterrupted {
				continue
			}
			ids = append(ids, string(j.ID)+"\t"+j.Workspace+", "+what(j)+", "+string(j.State))
		}
		return ids, err
	}
}

func inventoryNames(ctx context.Context, cl *rpc.Client) ([]string, error) {
	all, err := cl.ListInventories(ctx)
	names := make([]string, 0, len(all))
	for _, i := range all {
		names = append(names, i.Name()+"\t"+strconv.Itoa(len(i.Hosts))+" host(s)")
	}
	return names, err
}

func inventoryHosts(ctx context.Context, cl *rpc.Client) ([]string, error) {
	all, err := cl.ListInventories(ctx)
	var hosts []string
	for _, i := range all {
		for _, h := range i.Hosts {
			hosts = append(hosts, i.Workspace+"/"+h)
		}
	}
	return hosts, err
}

func pinnedHosts(ctx context.Context, cl *rpc.Client) ([]string, error) {
	pins, err := cl.ListPins(ctx, orchestrator.PinFilter{})
	var hosts []string
	for _, p := range pins {
		for _, u := range p.Users {
			hosts = append(hosts, u.Workspace+"/"+u.Host+"\t"+p.SHA256)
		}
	}
	return hosts, err
}

func pinnedAddresses(ctx context.Context, cl *rpc.Client) ([]string, error) {
	pins, err := cl.ListPins(ctx, orchestrator.PinFilter{})
	addresses := make([]string, 0, len(pins))
	for _, p := range pins {
		addresses = append(addresses, p.HostPort()+"\t"+p.SHA256)
	}
	return addresses, err
}
