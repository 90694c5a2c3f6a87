package provider

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// patience is how long an apply waits for a daemon that is away before it has
// taken the request: a restart is over by then.
const patience = 10 * time.Second

// daemon is where the daemon of a provider configuration is.
type daemon struct {
	options  rpc.ClientOptions
	unknown  bool // the configuration depends on what an apply has yet to make
	patience time.Duration
}

// dial attaches for one operation; the caller closes the client. Nil is a
// provider that was never configured. Errors are those of [rpc.Dial].
func (d *daemon) dial(ctx context.Context) (*rpc.Client, error) {
	if d == nil || d.unknown {
		return nil, orchestrator.Errorf(orchestrator.CodeUnavailable, "where the daemon is, is not known yet").
			WithHint("give the provider's socket and token_file values that are known before the apply")
	}
	return rpc.Dial(ctx, d.options)
}

// with calls fn with a client that it closes after.
func (d *daemon) with(ctx context.Context, fn func(*rpc.Client) error) error {
	c, err := d.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}

// insist returns a client with which fn, which may be repeated, has succeeded;
// the caller closes it. While the daemon is away both are tried again, until the
// patience or ctx ends; the error is then that of the last try.
func (d *daemon) insist(ctx context.Context, fn func(*rpc.Client) error) (*rpc.Client, error) {
	for delay, begun := 100*time.Millisecond, time.Now(); ; delay = min(2*delay, time.Second) {
		c, err := d.dial(ctx)
		if err == nil {
			if err = fn(c); err == nil {
				return c, nil
			}
			_ = c.Close()
		}
		if d == nil || d.unknown || !errors.Is(err, orchestrator.ErrUnavailable) || time.Since(begun)+delay > d.patience {
			return nil, err
		}
		tflog.Warn(ctx, "the daemon is away, trying again", map[string]any{"error": err.Error(), "delay": delay.String()})
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(delay):
		}
	}
}

// within returns a context that ends after limit, and the function that frees it.
// It has no deadline: gRPC would tell the daemon, which would hang up a moment
// before the caller knows why.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(limit, cancel)
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

// daemonOf takes what the provider's Configure left for a resource or data
// source: nil before it was called.
func daemonOf(data any, diags *diag.Diagnostics) *daemon {
	if data == nil {
		return nil
	}
	d, ok := data.(*daemon)
	if !ok {
		diags.AddError("Provider data of another type", "This is a mistake in the provider; please report it.")
	}
	return d
}

// explain returns an error as a diagnostic shows it: what is wrong, and what to
// type next in a line of its own.
func explain(err error) string {
	f := orchestrator.FailureOf(err)
	return withHint(f.Message, f.Hint)
}

func withHint(message, hint string) string {
	if hint != "" {
		message += "\n\nNext: " + hint
	}
	return printable(message)
}

// printable replaces what could steer a terminal; line ends stay.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
			return '?'
		}
		return r
	}, s)
}
