package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) hostCommand() *cobra.Command {
	return group("host", "Host keys, onboarding and the fleet key",
		a.hostOnboard(), a.hostKnownHosts(), a.hostForget(), a.hostFleetKey())
}

func (a *app) hostOnboard() *cobra.Command {
	var spec rpc.OnboardSpec
	var print bool
	c := &cobra.Command{
		Use:   "onboard HOST...",
		Short: "Pin and onboard hosts of an inventory, outside any chain",
		Long: `Pin the hosts' keys and run the onboarding play against them. HOST is
WORKSPACE/HOST, or a name that is unique among the inventories.

A changed host key is refused until you have checked it out of band; --rotate
then replaces the pin. --print shows the extra variables and the command
instead, to onboard by hand.`,
	}
	c.Flags().BoolVar(&spec.Rotate, "rotate", false, "replace the pin of a host whose key has changed")
	c.Flags().StringArrayVar(&spec.SSHIdentities, "ssh-identity", nil, "private key `file` on the daemon's host to log in with; may be repeated")
	c.Flags().BoolVar(&print, "print", false, "print the JSON extra variables on standard output and the command on standard error; onboard nothing")
	wait := waitFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		for i := range spec.SSHIdentities {
			if err := absolute(&spec.SSHIdentities[i]); err != nil {
				return err
			}
		}
		if print {
			return a.printOnboard(c.Context(), args, spec.SSHIdentities, wait.json)
		}
		spec.Hosts = args
		return a.submitJob(c.Context(), wait, func(ctx context.Context, cl *rpc.Client) (orchestrator.Job, error) {
			return cl.OnboardHosts(ctx, "", spec)
		})
	}
	return c
}

// printOnboard prints how hosts are onboarded by hand, with a key file if one is
// given; ansible-playbook takes no more.
func (a *app) printOnboard(ctx context.Context, refs, identities []string, asJSON bool) error {
	if len(identities) > 1 {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "--print with %d key files: ansible-playbook takes one", len(identities)).
			WithHint("give one --ssh-identity")
	}
	return a.with(ctx, func(cl *rpc.Client) error {
		var all []rpc.OnboardVars
		for _, ref := range refs {
			v, err := cl.GetOnboardVars(ctx, ref)
			if err != nil {
				return err
			}
			if len(identities) > 0 {
				v.Command = slices.Insert(v.Command, 1, "--private-key", identities[0])
			}
			all = append(all, v)
		}
		if asJSON {
			return a.printJSON(all)
		}
		for _, v := range all {
			if _, err := fmt.Fprintln(a.Out, v.JSON); err != nil {
				return err
			}
			a.say("%s", orchestrator.ShellCommand(v.Command...))
		}
		return nil
	})
}

func (a *app) hostKnownHosts() *cobra.Command {
	var filter orchestrator.PinFilter
	c := &cobra.Command{
		Use:   "known-hosts [ADDRESS]",
		Short: "Print the pinned host keys in the form of known_hosts",
		Long: `Print the pins as OpenSSH's known_hosts, each behind a comment with its SHA256
fingerprint, so that the output serves people and ssh alike. ADDRESS is a host as
known_hosts names it: 192.0.2.1, or [192.0.2.1]:2222 where the port is not 22.`,
	}
	c.Flags().BoolVar(&filter.IncludeRetired, "retired", false, "also list retired pins, as comments")
	c.Flags().StringVar(&filter.Workspace, "workspace", "", "only the hosts of this `workspace`")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			pins, err := cl.ListPins(c.Context(), filter)
			if len(args) > 0 {
				pins = slices.DeleteFunc(pins, func(p orchestrator.Pin) bool { return !strings.EqualFold(p.HostPort(), args[0]) })
			}
			if err == nil && len(pins) == 0 {
				err = known(c.Context(), cl, filter.Workspace)
			}
			if err != nil {
				return err
			}
			if *asJSON {
				return a.printJSON(list(pins))
			}
			for _, p := range pins {
				if err := a.printPin(p); err != nil {
					return err
				}
			}
			switch {
			case len(pins) > 0:
			case len(args) > 0:
				a.say("no pinned host key of %s; a run or `exocomp host onboard` pins it", printable(args[0]))
			default:
				a.say("no pinned host keys yet; a run or `exocomp host onboard` pins them")
			}
			return nil
		})
	}
	return c
}

func (a *app) printPin(p orchestrator.Pin) error {
	users := make([]string, 0, len(p.Users))
	for _, u := range p.Users {
		users = append(users, u.Workspace+"/"+u.Host)
	}
	line := fmt.Sprintf("%s %s %s", p.HostPort(), p.KeyType, p.Key)
	note := fmt.Sprintf("%s %s, %s", p.SHA256, p.Source, instant(p.AddedAt))
	if !p.RetiredAt.IsZero() {
		line = "# retired " + line
		note += fmt.Sprintf(", retired %s: %s", instant(p.RetiredAt), p.Retired)
	}
	_, err := fmt.Fprintf(a.Out, "# %s %s\n%s\n", printable(strings.Join(users, " ")), printable(note), printable(line))
	return err
}

func (a *app) hostForget() *cobra.Command {
	c := &cobra.Command{
		Use:   "forget HOST",
		Short: "Retire a host's pin and admission; the next contact is a first use again",
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			pin, err := cl.ForgetHost(c.Context(), args[0])
			if err != nil {
				return err
			}
			if *asJSON {
				if err := a.printJSON(pin); err != nil {
					return err
				}
			}
			a.say("retired the pin %s of %s", pin.SHA256, pin.HostPort())
			return nil
		})
	}
	return c
}

type fleetKeyView struct {
	PublicKey string `json:"public_key"` // an authorized_keys line
}

func (a *app) hostFleetKey() *cobra.Command {
	c := &cobra.Command{
		Use:   "fleet-key",
		Short: "Print the public half of the fleet key, as an authorized_keys line",
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			key, err := cl.GetFleetKey(c.Context())
			if err != nil {
				return err
			}
			if *asJSON {
				return a.printJSON(fleetKeyView{key})
			}
			_, err = fmt.Fprintln(a.Out, key)
			return err
		})
	}
	return c
}
