package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage makes every command below c check its command line as its Use line says,
// and every mistake in it a usage error that names what is wrong in words of
// that line.
func usage(c *cobra.Command) {
	c.SetFlagErrorFunc(flagError)
	if c.HasSubCommands() && !c.Runnable() { // cobra would take any argument for a wish for help
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if c.HasSubCommands() {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return nil
		}
		return argumentsOf(c.Use).check(c, args)
	}
	for _, sub := range c.Commands() {
		usage(sub)
	}
}

// arguments are what a command takes, from its Use line: names in capitals, in
// brackets the last ones where they may be left away, an ellipsis behind the last
// where it may be repeated, `[-- ARGS]` where the rest is passed on.
type arguments struct {
	names  []string
	needed int // how many of names
	many   bool
	passed bool
}

func argumentsOf(use string) arguments {
	use, _, passed := strings.Cut(use, " [-- ")
	a := arguments{names: strings.Fields(use)[1:], passed: passed}
	for i, name := range a.names {
		name, a.many = strings.CutSuffix(name, "...")
		a.names[i] = strings.Trim(name, "[]")
		if a.names[i] == name {
			a.needed++
		}
	}
	return a
}

func (a arguments) check(c *cobra.Command, args []string) error {
	if at := c.ArgsLenAtDash(); a.passed && at >= 0 {
		args = args[:at]
	}
	wrong := func(format string, is ...any) error {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s: %s", fmt.Sprintf(format, is...), synopsis(c))
	}
	switch missing := a.names[min(len(args), a.needed):a.needed]; {
	case len(missing) == 1:
		return wrong("%s is missing", missing[0])
	case len(missing) > 1:
		return wrong("%s are missing", strings.Join(missing, " and "))
	case len(args) > len(a.names) && !a.many:
		return wrong("unexpected argument %q", args[len(a.names)])
	default:
		return nil
	}
}

// synopsis is the command line of c, in the words of its Use line.
func synopsis(c *cobra.Command) string {
	_, takes, _ := strings.Cut(c.Use, " ")
	return strings.TrimSpace(c.CommandPath() + " " + takes)
}

// suggestAt is how many letters may be wrong in a command that is suggested.
const suggestAt = 2

func unknownCommand(c *cobra.Command, name string) error {
	err := orchestrator.Errorf(orchestrator.CodeInvalid, "unknown command %q for %q", name, c.CommandPath())
	c.SuggestionsMinimumDistance = suggestAt
	return meant(err, c.CommandPath()+" ", c.SuggestionsFor(name))
}

// unknownFlag suggests flags as commands are suggested.
func unknownFlag(c *cobra.Command, err error, name string) error {
	flags := &cobra.Command{SuggestionsMinimumDistance: suggestAt}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	return meant(orchestrator.Errorf(orchestrator.CodeInvalid, "%w", err), "--", flags.SuggestionsFor(name))
}

// meant hints at what is near, if anything is.
func meant(err *orchestrator.Error, prefix string, near []string) error {
	if len(near) == 0 {
		return err
	}
	for i := range near {
		near[i] = prefix + near[i]
	}
	return err.WithHint("did you mean: %s", strings.Join(near, ", or "))
}

// passable are the flags of ansible-playbook that a person may pass through.
var passable = []string{
	"--check", "--diff", "--limit", "--tags", "--skip-tags", "--start-at-task", "--extra-vars", "--forks", "--verbose",
	"-C", "-D", "-l", "-t", "-e", "-f", "-v",
}

// flagError says what is wrong with a flag, and how it is written.
func flagError(c *cobra.Command, err error) error {
	if c.HasSubCommands() && c.Flags().NArg() > 0 {
		return unknownCommand(c, c.Flags().Arg(0)) // and its flags are as unknown
	}
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var none *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		flag := "--" + unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			flag = "-" + short
		}
		if argumentsOf(c.Use).passed && slices.Contains(passable, flag) {
			takes, _, _ := strings.Cut(synopsis(c), " [-- ")
			return orchestrator.Errorf(orchestrator.CodeInvalid, "%w", err).
				WithHint("what is ansible-playbook's stands behind --: %s -- %s …", takes, flag)
		}
		if strings.HasPrefix(flag, "--") { // of a letter everything is near
			return unknownFlag(c, err, unknown.GetSpecifiedName())
		}
	case errors.As(err, &value):
		flag, why := value.GetFlag(), value.Unwrap().Error()
		if form := formOf(flag); form != "" {
			why = "it is no " + form
		}
		return orchestrator.Errorf(orchestrator.CodeInvalid, "--%s %q: %s", flag.Name, value.GetValue(), why)
	case errors.As(err, &none):
		if form := formOf(none.GetFlag()); form != "" {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "%w: a %s", err, form)
		}
	}
	return orchestrator.Errorf(orchestrator.CodeInvalid, "%w", err)
}

// formOf names what a flag takes, with an example. It is empty for a text, and
// for what says by itself what is wrong.
func formOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "duration":
		return "duration, such as 90s, 5m or 1h30m"
	case "intSlice":
		return "number, such as 443, or 443,8443 for two"
	case "int64":
		return "number, such as 100"
	case "bool":
		return "truth value: leave it away, or say true or false"
	default:
		return ""
	}
}
