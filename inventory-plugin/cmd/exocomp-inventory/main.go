// Command exocomp-inventory is the standing inventories for Ansible, which starts
// it: `ansible-playbook -i exocomp-inventory site.yml`. It is a client of the
// daemon.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/exocomp/exocomp/inventory-plugin/internal/script"
)

// version is set at link time.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := script.Run(ctx, os.Args, os.Stdout, os.Stderr, version)
	stop()
	os.Exit(code)
}
