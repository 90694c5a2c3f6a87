package provider

import (
	"os"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// frameworkLevel sets the level of the plugin framework's own log.
const frameworkLevel = "TF_LOG_SDK_FRAMEWORK"

// gcPercent lets the heap grow before it is collected: the process lives for a
// command, and a third of a large plan would go into collecting.
const gcPercent = 400

// Serve serves a provider of a release to the OpenTofu that started the process,
// until that ends; or, for a debugger, to whoever takes what it prints.
//
// Where nobody asked OpenTofu for a log, the framework writes none. It would
// write trace lines for every leaf of a value, for OpenTofu to drop, each from
// a context that wraps the one before: a plan of a thousand hosts then takes
// quadratic time for lines that nobody reads (framework 1.19).
func Serve(version string, waitForDebugger bool) error {
	if !logged(os.Environ()) {
		if err := os.Setenv(frameworkLevel, "OFF"); err != nil {
			return err
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	var options []tf6server.ServeOpt
	if waitForDebugger {
		options = append(options, tf6server.WithManagedDebug())
	}
	return tf6server.Serve(Address, func() tfprotov6.ProviderServer { return newServer(New(version)()) }, options...)
}

// logged reports whether somebody asked OpenTofu for a log: by TF_LOG or one of
// its relatives, TF_LOG_PROVIDER_EXOCOMP say.
func logged(environ []string) bool {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "TF_LOG") && value != "" {
			return true
		}
	}
	return false
}
