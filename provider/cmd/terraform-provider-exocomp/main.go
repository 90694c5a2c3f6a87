// Command terraform-provider-exocomp is the provider of OpenTofu and Terraform
// for exocomp. OpenTofu starts it; it is a client of the daemon.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/exocomp/exocomp/provider/internal/provider"
)

// version is set at link time.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "serve until interrupted and print what to export, for a debugger")
	flag.Parse()
	if err := provider.Serve(version, *debug); err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-exocomp:", err)
		os.Exit(1)
	}
}
