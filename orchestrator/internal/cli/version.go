package cli

import (
	"fmt"
	"runtime"

	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

type versionView struct {
	Version  string `json:"version"`
	Contract int    `json:"contract"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "Show the version"}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		v := versionView{a.version, rpc.ContractVersion, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		if *asJSON {
			return a.printJSON(v)
		}
		_, err := fmt.Fprintf(a.Out, "exocomp %s (contract %d, %s, %s)\n", v.Version, v.Contract, v.Go, v.Platform)
		return err
	}
	return c
}
