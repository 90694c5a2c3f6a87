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
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
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

// usage is what --help prints before the flags.
const usage = `Usage: nethost run [flags]

Run one throwaway SSH host until standard input ends (keep it open: a terminal,
or "sleep infinity | nethost run") or SIGTERM comes. A line of JSON tells when
the host is up: name, address, port, user, key, host_key, fingerprint.

Flags of run:
`

// run returns [flag.ErrHelp] after printing the help to stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("nethost run", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main says what is wrong
	name := flags.String("name", "web1", "host `name`")
	port := flags.Int("port", 22, "`port` of sshd")
	user := flags.String("user", "root", "login `user`; any other than root has passwordless sudo")
	authorize := flags.String("authorize", "", "a further public `key` of the login user, as a line of authorized_keys")
	late := flags.Duration("late", 0, "start sshd this `duration` after the host; refuse connections until then")
	flags.Usage = func() {}
	help := func() error {
		fmt.Fprint(stderr, usage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return flag.ErrHelp
	}
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "run":
	case "-h", "-help", "--help", "help":
		return help()
	default:
		return fmt.Errorf("unknown command %q; see nethost --help", command)
	}
	err = flags.Parse(args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return help()
	case err != nil:
		return fmt.Errorf("%w; see nethost run --help", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; see nethost run --help", flags.Arg(0))
	}

	lab, err := nethost.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	options := nethost.HostOptions{Name: *name, Port: *port, User: *user, LateSSHD: *late > 0}
	if *authorize != "" {
		options.AuthorizedKeys = []string{*authorize}
	}
	h, err := lab.Host(ctx, options)
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
