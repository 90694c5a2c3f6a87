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
		v := a.versionView()
		if *asJSON {
			return a.printJSON(v)
		}
		_, err := fmt.Fprintln(a.Out, v)
		return err
	}
	return c
}

func (a *app) versionView() versionView {
	return versionView{a.version, rpc.ContractVersion, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}

func (v versionView) String() string {
	return fmt.Sprintf("exocomp %s (contract %d, %s, %s)", v.Version, v.Contract, v.Go, v.Platform)
}
