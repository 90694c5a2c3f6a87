// Command nethost runs one throwaway SSH host for a shell script, until its
// standard input ends or it gets SIGTERM.
//
//	nethost run [--name web1] [--port 22] [--user root] [--late 5s]
//
// It prints one line of JSON as soon as the host is up: name, address, port,
// user, key (the path of a private key that opens it), host_key and fingerprint
// (of its ed25519 host key).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/exocomp/exocomp/test/nethost"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "nethost:", err)
		os.Exit(1)
	}
}

// host is what the command prints.
type host struct {
	Name        string `json:"name"`
	Address     string `json:"address"`
	Port        int    `json:"port"`
	User        string `json:"user"`
	Key         string `json:"key"`
	HostKey     string `json:"host_key"`
	Fingerprint string `json:"fingerprint"`
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) (err error) {
	if len(args) == 0 || args[0] != "run" {
		return errors.New("unknown command; usage: nethost run [--name NAME] [--port PORT] [--user USER] [--late DURATION]")
	}
	flags := flag.NewFlagSet("nethost run", flag.ContinueOnError)
	name := flags.String("name", "web1", "host `name`")
	port := flags.Int("port", 22, "`port` of sshd")
	user := flags.String("user", "root", "login `user`; any other than root has passwordless sudo")
	late := flags.Duration("late", 0, "start sshd this `duration` after the host; refuse connections until then")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}

	lab, err := nethost.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	h, err := lab.Host(ctx, nethost.HostOptions{Name: *name, Port: *port, User: *user, LateSSHD: *late > 0})
	if err != nil {
		return err
	}
	err = json.NewEncoder(stdout).Encode(host{
		Name: h.Name(), Address: h.Addr(), Port: h.Port(), User: h.User(), Key: lab.Key().Path,
		HostKey: h.PublicHostKey(nethost.ED25519), Fingerprint: h.HostKeyFingerprint(nethost.ED25519),
	})
	if err != nil {
		return err
	}
	return hold(ctx, h, *late, stdin)
}

// hold waits for the end of input or of ctx and starts sshd on the way.
func hold(ctx context.Context, h *nethost.Host, late time.Duration, stdin io.Reader) error {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		close(ended)
	}()
	var start <-chan time.Time
	if late > 0 {
		start = time.After(late)
	}
	for {
		select {
		case <-start:
			if err := h.StartSSHD(ctx); err != nil {
				return err
			}
		case <-ended:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
