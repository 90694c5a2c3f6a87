package provider

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// attemptEnv holds the token of the daemon's job within which OpenTofu runs.
const attemptEnv = "EXOCOMP_ATTEMPT"

// ensuring is one Create or Update.
type ensuring struct {
	daemon *daemon
	own    ownership
	limit  time.Duration
	create bool

	answered bool             // the daemon took the request
	heard    chan struct{}    // closed then
	run      orchestrator.Run // does the resource's work; zero while none does
	waiting  orchestrator.Run // must end first; zero where none must
	deferred bool             // the run goes on when the caller's own job has ended
}

// ensure asks for the chain that plan describes and follows it to its end. It
// fills in the computed values of plan and reports whether they are to be kept:
// beside an error that means that there is a run, which the next apply takes up.
func (e *ensuring) ensure(ctx context.Context, plan *provisionModel, secrets types.Map, diags *diag.Diagnostics) bool {
	req, ok := e.request(ctx, plan, secrets, diags)
	if !ok {
		return false
	}
	limited, cancel := within(ctx, e.limit)
	defer cancel()
	c, err := e.daemon.insist(limited, func(c *rpc.Client) error { return upload(limited, c, plan, &req.Spec) })
	if err == nil {
		defer c.Close()
		asking, end := e.untilHeard(limited)
		defer end()
		err = c.EnsureRun(asking, req, func(step orchestrator.Ensured) error {
			e.note(ctx, step)
			return nil
		})
	}
	if e.run.ID == "" {
		plan.pend()
	} else {
		diags.Append(plan.record(ctx, e.run)...)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		diags.AddWarning(e.interrupted())
		return true
	case err != nil && limited.Err() != nil:
		diags.AddError(e.timedOut())
	case err != nil:
		diags.AddError(fmt.Sprintf("Workspace %s could not be provisioned", req.Workspace), explain(err)+e.resumes())
	default:
		e.ended(diags)
		return true
	}
	return e.run.ID != ""
}

// hearing is how long an apply that was interrupted still listens for the first
// answer: the daemon may have begun a run of which nobody would hear.
const hearing = 2 * time.Second

// untilHeard returns a context that ends with ctx, or where the daemon has not
// answered yet, as soon as it has, but within [hearing].
func (e *ensuring) untilHeard(ctx context.Context) (context.Context, context.CancelFunc) {
	e.heard = make(chan struct{})
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		select {
		case <-e.heard:
		case <-asking.Done():
		case <-time.After(hearing):
		}
	})
	return asking, func() {
		stop()
		cancel()
	}
}

// request returns what plan describes, but for the playbooks.
func (e *ensuring) request(ctx context.Context, plan *provisionModel, secrets types.Map, diags *diag.Diagnostics) (orchestrator.EnsureRun, bool) {
	req := orchestrator.EnsureRun{
		Workspace: plan.Workspace.ValueString(),
		Owner:     orchestrator.NewSecret(e.own.Owner),
		Claim:     e.own.Imported,
		Attempt:   orchestrator.NewSecret(os.Getenv(attemptEnv)),
	}
	req.Dir, _ = os.Getwd() // for display
	if v, ok := dynamic(ctx, plan.Inventory, "inventory", diags); ok {
		handed, err := handOver(v)
		if err != nil {
			diags.AddAttributeError(path.Root("inventory"), "Invalid inventory", explain(err))
		}
		req.Inventory = handed
	}
	if v, ok := dynamic(ctx, plan.Vars, "vars", diags); ok {
		doc, err := varsDocument(v)
		if err != nil {
			diags.AddAttributeError(path.Root("vars"), "Invalid variables", explain(err))
		}
		req.Spec.Vars = doc
	}
	wait, err := time.ParseDuration(plan.SSHWait.ValueString())
	if err != nil {
		diags.AddAttributeError(path.Root("ssh_wait"), "Invalid value", explain(err))
	}
	req.Spec.SSHWait = wait
	var triggers map[string]string
	diags.Append(plan.SSHIdentities.ElementsAs(ctx, &req.Spec.SSHIdentities, false)...)
	diags.Append(plan.Triggers.ElementsAs(ctx, &triggers, false)...)
	req.Spec.Revision = revision(triggers, plan.SecretsWOVersion.ValueString())
	var plain map[string]string
	if diags.Append(secrets.ElementsAs(ctx, &plain, false)...); len(plain) > 0 {
		req.Env = make(map[string]orchestrator.Secret, len(plain))
		for name, value := range plain {
			req.Env[name] = orchestrator.NewSecret(value)
		}
	}
	return req, !diags.HasError()
}

// upload gives the daemon the playbooks as they are now.
func upload(ctx context.Context, c *rpc.Client, plan *provisionModel, spec *orchestrator.RunSpec) error {
	ref, err := c.UploadPlaybook(ctx, plan.Playbook.ValueString())
	if err != nil {
		return err
	}
	spec.Playbook = ref
	if onboard := plan.OnboardPlaybook.ValueString(); onboard != "" {
		ref, err := c.UploadPlaybook(ctx, onboard)
		if err != nil {
			return err
		}
		spec.OnboardPlaybook = &ref
	}
	return nil
}

// note keeps what the daemon said last.
func (e *ensuring) note(ctx context.Context, step orchestrator.Ensured) {
	if !e.answered {
		e.answered = true
		close(e.heard)
	}
	e.deferred = step.Deferred
	if step.Waiting {
		e.waiting, e.run = step.Run, orchestrator.Run{}
	} else {
		e.waiting, e.run = orchestrator.Run{}, step.Run
	}
	tflog.Info(ctx, "run", map[string]any{
		"run": string(step.Run.ID), "state": string(step.Run.State), "waiting": step.Waiting, "deferred": step.Deferred,
	})
}

// ended tells how a run ended that the daemon followed to its end, or put off.
func (e *ensuring) ended(diags *diag.Diagnostics) {
	run := e.run
	switch {
	case e.deferred && run.ID == "":
		diags.AddWarning(fmt.Sprintf("Workspace %s waits for run %s", e.waiting.Workspace, e.waiting.ID),
			fmt.Sprintf("This apply is itself a job of the daemon, and %s must end before the run of this resource. Apply again after it.\n\nNext: exocomp provision status %s",
				e.waiting.ID, e.waiting.ID))
	case e.deferred:
		diags.AddWarning(fmt.Sprintf("Run %s goes on after this apply", run.ID),
			fmt.Sprintf("This apply is itself a job of the daemon, which does not wait for its own. The run is %s and goes on when the job has ended.\n\nNext: exocomp provision status %s",
				run.State, run.ID))
	case run.State == orchestrator.RunSucceeded:
	case run.State == orchestrator.RunAwaitingApproval:
		diags.AddWarning(fmt.Sprintf("Run %s waits for an approval", run.ID),
			fmt.Sprintf("It goes on when somebody has decided; apply again to follow it.\n\nNext: exocomp provision status %s", run.ID))
	case run.State.Final():
		diags.AddError(failureSummary(run), failureDetail(run)+e.resumes())
	default:
		diags.AddError(fmt.Sprintf("Run %s is %s and the daemon has stopped telling", run.ID, run.State),
			"It goes on by itself."+e.resumes())
	}
}

// interrupted is no error: it would taint a created resource, and the next apply
// would replace what it should follow.
func (e *ensuring) interrupted() (summary, detail string) {
	if e.run.ID == "" {
		return "Interrupted before there was a run", "The next apply asks the daemon again." + e.behind()
	}
	return fmt.Sprintf("Interrupted; run %s goes on", e.run.ID),
		fmt.Sprintf("The daemon goes on with it. The next apply takes it up and says how it ended.\n\nNext: exocomp provision status %s", e.run.ID)
}

func (e *ensuring) timedOut() (summary, detail string) {
	name := "update"
	if e.create {
		name = "create"
	}
	raise := fmt.Sprintf(" The resource may be given more time: timeouts = { %s = \"2h\" }.", name)
	if e.run.ID == "" {
		return fmt.Sprintf("There was no run within %s", e.limit), "The next apply asks the daemon again." + raise + e.behind()
	}
	return fmt.Sprintf("Run %s did not end within %s", e.run.ID, e.limit),
		fmt.Sprintf("The run goes on by itself, and is %s.%s%s\n\nNext: exocomp provision status %s", e.run.State, raise, e.resumes(), e.run.ID)
}

// behind names the run that stands in the way.
func (e *ensuring) behind() string {
	if e.waiting.ID == "" {
		return ""
	}
	return fmt.Sprintf(" Run %s must end first.\n\nNext: exocomp provision status %s", e.waiting.ID, e.waiting.ID)
}

// resumes says what the next apply does about a run that an error leaves.
func (e *ensuring) resumes() string {
	switch {
	case e.run.ID == "":
		return ""
	case !e.create:
		return "\n\nThe next apply takes the same run up; no step that succeeded is repeated."
	}
	return "\n\nThe resource is tainted: the next apply replaces it in the state, and takes the same run up; no step that succeeded is repeated. " +
		"Where prevent_destroy forbids that, `tofu untaint ADDRESS`, with the address that stands below, makes it an update."
}
